import type { Caller } from '../contracts/api/auth.js';
import type { PolicyRequest } from './policy-request.js';

/** What policies see of a caller's token, with what it is limited to. */
export function tokenFacts(caller: Caller): NonNullable<PolicyRequest['token']> {
  const { sub, credential_id, scopes, agent_type, user_id, session_id, agent_types_allowed: agent_types } = caller;
  return {
    ...{ sub, credential_id, scopes, agent_type },
    ...(user_id !== undefined && { user_id }),
    ...(session_id !== undefined && { session_id }),
    ...(agent_types && { agent_types }),
  };
}
