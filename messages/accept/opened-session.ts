import type { Caller } from '../../contracts/api/auth.js';
import type { Db } from '../../db/pool.js';
import { type Outcome, outcomeOf, recordDecision } from '../../policy/enforce.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { tokenFacts } from '../../policy/token-facts.js';
import type { MessageCore } from '../core.js';
import { wantedAgent } from '../policy-requests.js';
import type { NewMessage } from './accept-transaction.js';
import { checkTypes, TYPES_WITH_SKILL } from './skill-types.js';

const NOTHING_SAID: Outcome = { events: [], refusal: null };

/** The agent types that a message may go to if it names none. */
async function typesFor(db: Db, { tenant_id, want_instance_id, want_skill_id }: NewMessage): Promise<string[]> {
  const [text, values] =
    want_instance_id !== null
      ? ['SELECT agent_type FROM agents WHERE tenant_id = $1 AND instance_id = $2', [tenant_id, want_instance_id]]
      : want_skill_id !== null
        ? [TYPES_WITH_SKILL, [tenant_id, want_skill_id]]
        : ['SELECT default_target($1) AS agent_type', [tenant_id]];
  const rows = await db.tenant(tenant_id, (tx) => tx.query<{ agent_type: string | null }>(text, values));
  checkTypes(rows);
  return rows.flatMap(({ agent_type }) => agent_type ?? []);
}

/**
 * Lets the policies of scope `session` decide about the session that a message opens, as they do for `/sessions/init`. They decide in memory, unless they look
 * at the agent's type and the message names none: then they decide about each type that may get it.
 * @throws PlatformError SERVICE_UNAVAILABLE while the policies cannot be read
 */
export async function decideOpening(
  { db, policies }: Pick<MessageCore, 'db' | 'policies'>,
  caller: Caller,
  draft: NewMessage,
): Promise<Outcome> {
  const { tenant_id, want_agent_type, requested_context, user_id } = draft;
  if (!policies.concerns(tenant_id, 'session')) return NOTHING_SAID;
  const agent = wantedAgent(draft);
  const request: PolicyRequest = {
    ...{ scope: 'session', action: 'init', arguments: {}, agent, token: tokenFacts(caller) },
    session: {
      ...(requested_context !== '' && { session_id: requested_context }),
      ...(user_id !== null && { user_id }),
    },
  };
  const early = await policies.decideEarly(tenant_id, request, want_agent_type === null ? ['agent_type'] : []);
  if (early !== 'later') return outcomeOf(early, request);
  let first: Outcome | undefined;
  for (const agent_type of await typesFor(db, draft)) {
    const about = { ...request, agent: { ...agent, agent_type } };
    const outcome = outcomeOf(await policies.decide(tenant_id, about), about);
    if (outcome.refusal) return outcome;
    first ??= outcome;
  }
  return first ?? outcomeOf(await policies.decide(tenant_id, request), request);
}

/** Records that policies refuse the session of a message. */
export async function recordRefusal(
  { db }: Pick<MessageCore, 'db'>,
  { tenant_id, requested_context }: NewMessage,
  { events }: Outcome,
): Promise<void> {
  await db.tenant(tenant_id, (tx) => recordDecision(tx, tenant_id, requested_context, events));
}
