import type { Caller } from '../../contracts/api/auth.js';
import type { ApprovalPrincipal } from '../../contracts/api/policies/approvals.js';
import {
  answerRefusal,
  namesSlackUser,
  type OpenQuestion,
  principalOf,
  type RuleWriter,
  ruleAnswerRefusal,
} from '../../contracts/permissions.js';
import type { Tx } from '../../db/pool.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { tokenFacts } from '../../policy/token-facts.js';
import { PlatformError } from '../../runtime/errors.js';
import type { AskedRequest, MessageRow } from '../read/rows.js';

/** Whose message or plan a request is about. */
export interface Asker {
  tenant_id: string;
  /** The credentials that sent the message, or created the plan. */
  senders: readonly string[];
  /** The agent that has the message, or the credential of the agent that proposed the plan; null where there is none. */
  agent: { instance_id: string } | { credential_id: string } | null;
}

/** The credentials that count as the sender of a message, the first one first: a retry also belongs to whoever sent the message first. */
export function sendersOf(row: Pick<MessageRow, 'credential_id' | 'first_credential_id'>): string[] {
  const { credential_id, first_credential_id } = row;
  return first_credential_id === null ? [credential_id] : [first_credential_id, credential_id];
}

export const askerOfMessage = (row: MessageRow): Asker => ({
  ...{ tenant_id: row.tenant_id, senders: sendersOf(row) },
  agent: row.instance_id === null ? null : { instance_id: row.instance_id },
});

/** Who decides about a request. */
export interface Principal extends ApprovalPrincipal {
  /** Counts once towards a quorum. */
  voter: string;
  /** The network address that the decision came from. */
  ip?: string | undefined;
  /** What policies see of an access token. */
  token?: PolicyRequest['token'];
  /**
   * @returns the credentials whose vote this may be: towards a quorum it counts only where none of them has approved
   * @throws PlatformError forbidden for one who may not decide about this request
   */
  mayAnswer(tx: Tx, asker: Asker, request: AskedRequest): Promise<readonly string[]>;
}

/** What is known of the alert rule by whose delivery somebody decides. */
export interface DecidingRule {
  rule_id: string;
  /** The credentials that wrote it: each may have pointed a channel of it at themselves. */
  writers: readonly string[];
}

/** The credential that registered the agent; null if unknown. */
async function registeredWith(tx: Tx, { tenant_id, agent }: Asker): Promise<string | null> {
  if (agent === null) return null;
  if ('credential_id' in agent) return agent.credential_id;
  const [row] = await tx.query<{ credential_id: string | null }>(
    'SELECT credential_id FROM agents WHERE tenant_id = $1 AND instance_id = $2',
    [tenant_id, agent.instance_id],
  );
  return row?.credential_id ?? null;
}

const OF_AGENTS: readonly AskedRequest['stage'][] = ['agent', 'tool', 'output', 'proposal'];

/** Whether the agent itself asks at this stage, or wants to do what is asked about. */
export const isOfAgent = (stage: AskedRequest['stage']): boolean => OF_AGENTS.includes(stage);

/** How a caller counts towards a quorum. */
export function voterOf(caller: Caller): string {
  const { type, id } = principalOf(caller);
  return `${type}:${id}`;
}

async function questionOf(tx: Tx, asker: Asker, request: AskedRequest): Promise<OpenQuestion> {
  const { source, stage, approvers, allow_self } = request;
  const by_agent = isOfAgent(stage);
  const registered_with = by_agent ? await registeredWith(tx, asker) : null;
  return { source, by_agent, registered_with, approvers, allow_self, sent_with: asker.senders };
}

const FULL = `SELECT credential_id FROM credentials WHERE tenant_id = $1 AND credential_id = ANY ($2) AND 'full' = ANY (scopes)`;

/** @throws PlatformError forbidden where nobody may answer by the rule */
async function checkWriters(tx: Tx, asker: Asker, request: AskedRequest, writers: readonly string[]) {
  const full = await tx.query<{ credential_id: string }>(FULL, [asker.tenant_id, writers]);
  const found = writers.map(
    (id): RuleWriter => ({ credential_id: id, is_full: full.some(({ credential_id }) => credential_id === id) }),
  );
  const refusal = ruleAnswerRefusal(found, await questionOf(tx, asker, request));
  if (refusal !== null) throw new PlatformError('forbidden', refusal);
  return found;
}

/** The principal in one word, as events and `approvals` name it. */
export function principalName({ type, id }: ApprovalPrincipal): string {
  return type === 'credential' ? id : `${type}:${id}`;
}

/**
 * A caller with an access token; the request decides whether it may answer. An end user is a person of their own, whose vote may be that of the
 * credential that made the token.
 */
export function callerPrincipal(caller: Caller, ip?: string): Principal {
  const { type, id } = principalOf(caller);
  return {
    type: type === 'person' ? type : 'credential', // an operator answers nothing
    id,
    voter: voterOf(caller),
    ip,
    token: tokenFacts(caller),
    mayAnswer: async (tx, asker, request) => {
      const refusal = answerRefusal(caller, await questionOf(tx, asker, request));
      if (refusal !== null) throw new PlatformError('forbidden', refusal);
      return [caller.credential_id];
    },
  };
}

/** Whose vote an answer through a rule may be: its writers'. None, if all of them have the scope `full` and could make credentials anyway. */
function standsFor(writers: readonly RuleWriter[]): string[] {
  return writers.every(({ is_full }) => is_full) ? [] : writers.map(({ credential_id }) => credential_id);
}

/**
 * The holder of a callback token, over the API (`callback`) or on the page behind a link (`page`): whoever reads the destination of the delivery. A destination
 * has one vote, however many tokens it gets for a request. Its vote may be that of a writer of the rule, who may have pointed two channels at themselves,
 * unless all writers have the scope `full`.
 * @param rule whose delivery carried the token
 */
export function tokenPrincipal(
  type: 'callback' | 'page',
  { rule_id, writers, destination }: DecidingRule & { destination?: string | null },
  ip?: string,
): Principal {
  const mayAnswer: Principal['mayAnswer'] = async (tx, asker, request) =>
    standsFor(await checkWriters(tx, asker, request, writers));
  return { type, id: rule_id, voter: `token:${destination ?? ''}`, ip, mayAnswer };
}

/** An alert rule by which users of Slack decide. */
export type SlackRule = Pick<DecidingRule, 'writers'> & { approvers: readonly string[] };

/**
 * Whether the request itself names a user of Slack.
 * @throws PlatformError forbidden where the rule does not either
 */
export function requireNamed(userId: string, rule: SlackRule, request: Pick<AskedRequest, 'approvers'>): boolean {
  const isNamed = namesSlackUser(request.approvers, userId);
  if (!isNamed && !namesSlackUser(rule.approvers, userId))
    throw new PlatformError('forbidden', 'Neither the rule nor the request names this Slack user as an approver.');
  return isNamed;
}

/**
 * A user of Slack, proved by the signing secret of an alert rule, which its writers know, or by a link that only this user was given. The vote counts as the
 * user's own if the request itself names the user and only credentials of scope `full` wrote the rule; else it may be that of a writer.
 * @param rule whose delivery had the button
 */
export function slackPrincipal(userId: string, rule: SlackRule, ip?: string): Principal {
  return {
    type: 'slack',
    id: userId,
    voter: `slack:${userId}`,
    ip,
    mayAnswer: async (tx, asker, request) => {
      const isNamed = requireNamed(userId, rule, request);
      const writers = await checkWriters(tx, asker, request, rule.writers);
      return isNamed ? standsFor(writers) : rule.writers;
    },
  };
}
