import type { ChosenAgent } from '../../agents/agent-row.js';
import type { Tx } from '../../db/pool.js';
import type { PolicyRequest, Verdict } from '../../policy/policy-request.js';
import { errorOfDenial, eventsOf, isUndecided, undecidedError } from '../../policy/verdict.js';
import type { MessageCore } from '../core.js';
import type { StoredError } from '../dispatch/message-end.js';
import { askInput } from '../input/ask.js';
import { approvalRequest, type PolicyMessage, policyRequest, senderFacts, wantedAgent } from '../policy-requests.js';
import type { MessageRow, RunningRow, SessionBinding } from '../read/rows.js';
import { recordMessageDecision } from '../record-decision.js';

type Scope = 'admission' | 'dispatch';

/** A row of `running_messages` with what the accept transaction left undecided, and what was decided since. */
export type GatedRow = RunningRow & {
  undecided: boolean;
  asked_policies: string[];
  /** What evaluators said about its dispatch to an agent, by a key of `KnownVerdicts`, and when, in milliseconds since 1970. */
  verdicts: Record<string, { verdict: Verdict; at_ms: number }>;
  /** Null for a message that a token without limits sent while the tenant had no policies about messages. */
  token: PolicyMessage['token'] | null;
};

/** Why policies stop a message in this transaction. `failed`: it has to fail. `asked`: it waits for a human from now on. */
export type Stop = { kind: 'failed'; error: StoredError } | { kind: 'asked' };

/** A verdict about a message. */
interface Ruling {
  scope: Scope;
  request: PolicyRequest;
  verdict: Verdict;
}

/** Verdicts that were given outside of a transaction, by the agent that they are about. */
export type KnownVerdicts = Map<string, Verdict>;

/** Thrown to leave the transaction, because the verdict may take time, and no lock may be held meanwhile. */
export class VerdictNeeded extends Error {
  constructor(
    readonly row: GatedRow,
    readonly key: string,
    readonly request: PolicyRequest,
  ) {
    super('the policies have to be asked outside of a transaction');
  }
}

const MESSAGE = `
  SELECT m.parts, m.metadata, m.credential_id, m.sender_agent_type, coalesce(c.scopes, '{}') AS scopes, m.user_id
    FROM messages m
    LEFT JOIN credentials c ON c.tenant_id = m.tenant_id AND c.credential_id = m.credential_id
   WHERE m.tenant_id = $1 AND m.message_id = $2`;

const OF_INSTANCE = 'SELECT agent_type FROM agents WHERE tenant_id = $1 AND instance_id = $2';
const WITH_SKILL = `
  SELECT a.agent_type FROM agent_skills s JOIN agents a USING (tenant_id, instance_id)
   WHERE s.tenant_id = $1 AND s.skill_id = $2 AND s.agent_type = '' ORDER BY s.has_room IS NULL, s.shuffle LIMIT 1`;
const NOBODY = { code: 'TARGET_UNAVAILABLE', message: 'No agent that the message is for is registered any more.' };

type Details = Pick<MessageRow, 'parts' | 'metadata' | 'credential_id' | 'user_id' | 'sender_agent_type'> & {
  scopes: string[];
};

/**
 * The policies of one message, in the transaction that takes it further: about its admission, if that was left undecided when it was accepted,
 * and about its dispatch to an agent that has taken it.
 */
export class PolicyGate {
  readonly #core: MessageCore;
  readonly #tx: Tx;
  readonly #row: GatedRow;
  readonly #known: KnownVerdicts;
  /** A human was asked in this transaction. */
  hasAsked = false;

  constructor(core: MessageCore, tx: Tx, row: GatedRow, known: KnownVerdicts) {
    this.#core = core;
    this.#tx = tx;
    this.#row = row;
    this.#known = known;
  }

  /** Decides whether the message may enter, if that was left undecided. Null: it may. @throws VerdictNeeded */
  async admit(session: SessionBinding): Promise<Stop | null> {
    if (!this.#row.undecided) return null;
    const agent_type = await this.#typeOf(session);
    if (agent_type === null) return { kind: 'failed', error: NOBODY };
    const admission = await this.#ask('admission', { ...wantedAgent(this.#row), agent_type });
    if (admission.verdict.decision !== 'allow') return this.follow(admission, null);
    await this.#admitted(admission);
    return null;
  }

  /** Decides about the dispatch that an agent has taken. Null: it may be sent. @throws VerdictNeeded */
  async rulingOn({ instance_id, agent_type }: ChosenAgent): Promise<Ruling | null> {
    const chosen = { instance_id, agent_type }; // evaluators see only these two members
    const dispatch = await this.#ask('dispatch', { ...wantedAgent(this.#row), ...chosen });
    if (dispatch.verdict.decision !== 'allow' && !this.#isApproved(dispatch.verdict, chosen)) return dispatch;
    await this.#record(dispatch.verdict, dispatch.request);
    return null;
  }

  /** Follows a verdict other than `allow`. The caller has released the dispatch, if there was one. */
  async follow(ruling: Ruling, chosen: ChosenAgent | null): Promise<Stop> {
    const { scope, request, verdict } = ruling;
    await this.#record(verdict, request);
    if (verdict.decision === 'allow') throw new Error('an allowed message goes on');
    if (verdict.decision === 'deny') return { kind: 'failed', error: errorOfDenial(verdict) };
    const { tenant_id, message_id } = this.#row;
    const asked = chosen ? [this.#approvalKey(verdict, chosen)] : [];
    await this.#tx.query(
      `UPDATE running_messages SET undecided = undecided AND $3, asked_policies = asked_policies || $4::text[],
              want_agent_type = CASE WHEN $3 THEN want_agent_type ELSE coalesce(want_agent_type, $5) END
        WHERE tenant_id = $1 AND message_id = $2`,
      [tenant_id, message_id, scope !== 'admission', asked, request.agent?.agent_type ?? null],
    );
    await askInput(this.#tx, this.#row, approvalRequest(verdict, request, scope));
    this.hasAsked = true;
    return { kind: 'asked' };
  }

  /** Records the admission, and binds the message to the type that it was admitted for. */
  async #admitted({ verdict, request }: Ruling): Promise<void> {
    const { tenant_id, message_id } = this.#row;
    await this.#record(verdict, request);
    await this.#tx.query(
      `UPDATE running_messages SET undecided = false, want_agent_type = coalesce(want_agent_type, $3)
        WHERE tenant_id = $1 AND message_id = $2`,
      [tenant_id, message_id, request.agent?.agent_type ?? null],
    );
  }

  async #ask(scope: Scope, agent: PolicyMessage['agent']): Promise<Ruling> {
    const { tenant_id, message_id, session_id } = this.#row;
    const details = await this.#read();
    const { parts, metadata, user_id } = details;
    const session = { session_id, ...(user_id !== null && { user_id }) };
    const token = this.#row.token ?? senderFacts(details);
    const request = policyRequest(scope, { message_id, parts, metadata, agent, session, token });
    const key = [scope, agent.agent_type, agent.instance_id, agent.skill_id].join('\n');
    const given = this.#known.get(key);
    const verdict = given ?? this.#decideNow(tenant_id, key, request);
    if (isUndecided(verdict)) throw undecidedError(verdict);
    return { scope, request, verdict };
  }

  #decideNow(tenantId: string, key: string, request: PolicyRequest): Verdict {
    const { policies } = this.#core;
    if (policies.needsWebhook(tenantId, request)) throw new VerdictNeeded(this.#row, key, request);
    const verdict = policies.decide(tenantId, request);
    if (verdict instanceof Promise) throw new VerdictNeeded(this.#row, key, request);
    return verdict;
  }

  /** Whether a human has approved: this version of the policy has asked about this kind of agent. A rejection would have failed the message. */
  #isApproved(verdict: Verdict, chosen: ChosenAgent): boolean {
    return (
      verdict.decision === 'require_approval' && this.#row.asked_policies.includes(this.#approvalKey(verdict, chosen))
    );
  }

  /** An approval holds for every instance of the type, unless the policy looks at instances. */
  #approvalKey({ by }: Extract<Verdict, { decision: 'require_approval' }>, chosen: ChosenAgent): string {
    if (by.source === 'guard') return `guard ${by.guard} ${chosen.agent_type}`;
    return `policy ${by.policy_id} ${by.changed_at_ms} ${chosen.agent_type}${by.per_instance ? ` ${chosen.instance_id}` : ''}`;
  }

  #record(verdict: Verdict, request: PolicyRequest): Promise<void> {
    return recordMessageDecision(this.#tx, this.#row, eventsOf(verdict, request));
  }

  async #read(): Promise<Details> {
    const { tenant_id, message_id } = this.#row;
    const [details] = await this.#tx.query<Details>(MESSAGE, [tenant_id, message_id]);
    if (!details) throw new Error('a running message has no row');
    return details;
  }

  /** The type that gets the message; of one that names only a skill, that of an agent that has it. Null where no such agent is registered any more. */
  async #typeOf(session: SessionBinding): Promise<string | null> {
    const { tenant_id, want_agent_type, want_instance_id, want_skill_id } = this.#row;
    if (want_agent_type !== null) return want_agent_type;
    if (want_instance_id === null && session.agent_type !== null) return session.agent_type;
    const found =
      want_instance_id === null
        ? this.#tx.query<{ agent_type: string }>(WITH_SKILL, [tenant_id, want_skill_id])
        : this.#tx.query<{ agent_type: string }>(OF_INSTANCE, [tenant_id, want_instance_id]);
    return (await found)[0]?.agent_type ?? null;
  }
}
