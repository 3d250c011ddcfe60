/**
 * The extension of A2A by which an agent's card declares idempotent skills: `capabilities.extensions: [{ uri, params: { skills: ['refund'] } }]`.
 * When their agent is lost, their messages are dispatched again. SQL reads it too (`is_idempotent`).
 */
export const IDEMPOTENT_SKILLS_URI = 'urn:agent-fleet:extensions:idempotent-skills';
/** In `params.skills`: every message of the agent, also one without a skill. */
export const ANY_SKILL = '*';
/**
 * The extension by which a hosted agent's card says that it takes the payload of a `dispatch` frame as the body of its requests. Every other
 * hosted agent gets strict JSON-RPC, with what the platform adds in `params.metadata` under this name.
 */
export const DISPATCH_URI = 'urn:agent-fleet:dispatch:1';
