import type { Caller } from '../contracts/api/auth.js';
import { NO_AGENT } from '../contracts/primitives.js';
import type { LaterFact } from '../policy/matching/facts.js';
import type { PolicyRequest } from '../policy/policy-request.js';
import { tokenFacts } from '../policy/token-facts.js';
import { type AskingVerdict, askerOf } from '../policy/verdict.js';
import { newId } from '../runtime/ids.js';
import type { NewMessage } from './accept/accept-transaction.js';
import { digestOf } from './digest.js';
import type { NewInputRequest } from './input/ask.js';

/** What policies see of a message. */
export interface PolicyMessage {
  message_id: string;
  parts: NewMessage['parts'];
  metadata: NewMessage['metadata'];
  /** Who gets it, as far as that is known. */
  agent: NonNullable<PolicyRequest['agent']>;
  session: NonNullable<PolicyRequest['session']>;
  token: NonNullable<PolicyRequest['token']>;
}

/** What policies see of a message's sender if the row has no `token`: the credential. What they see of a limited token is kept until the message is over. */
export function senderFacts(message: {
  credential_id: string;
  sender_agent_type: string | null;
  scopes: string[];
}): PolicyMessage['token'] {
  const { credential_id, sender_agent_type, scopes } = message;
  return { sub: credential_id, credential_id, scopes, agent_type: sender_agent_type ?? NO_AGENT };
}

/** The request to policies for a message that enters (scope `admission`), or goes to an agent (scope `dispatch`). */
export function policyRequest(scope: 'admission' | 'dispatch', message: PolicyMessage): PolicyRequest {
  const { parts, metadata, agent, session, token } = message;
  const action = scope === 'admission' ? 'send' : 'dispatch';
  return { scope, action, arguments: { parts, metadata }, agent, session, token };
}

/** The agent that a message names, as policies see it. */
export function wantedAgent({
  want_agent_type,
  want_instance_id,
  want_skill_id,
}: Pick<NewMessage, 'want_agent_type' | 'want_instance_id' | 'want_skill_id'>): PolicyMessage['agent'] {
  return {
    ...(want_agent_type !== null && { agent_type: want_agent_type }),
    ...(want_instance_id !== null && { instance_id: want_instance_id }),
    ...(want_skill_id !== null && { skill_id: want_skill_id }),
  };
}

/** A message that is being accepted, and the facts that policies cannot know yet. */
export function draftMessage(draft: NewMessage, caller: Caller): { message: PolicyMessage; later: LaterFact[] } {
  const { want_agent_type, requested_context, user_id } = draft;
  const message = {
    ...{ message_id: draft.message_id, parts: draft.parts, metadata: draft.metadata, agent: wantedAgent(draft) },
    session: { session_id: draft.session_id, ...(user_id !== null && { user_id }) },
    token: tokenFacts(caller),
  };
  const later: LaterFact[] = ['webhook'];
  // The type is the session's or the tenant's default, which the accept transaction finds.
  if (want_agent_type === null) later.push('agent_type');
  // The user is the session's, or that of the message on which the sending agent works.
  const mayBeOfUser = requested_context !== '' || (draft.sender_agent_type !== null && draft.parent_span_id !== null);
  if (user_id === null && mayBeOfUser) later.push('user_id');
  return { message, later };
}

const TITLES = {
  admission: 'A message waits for approval.',
  dispatch: 'A message to an agent waits for approval.',
  plan: 'A step of a plan waits for approval.',
};

/** The request to a human that a verdict about a message asks for. */
export function approvalRequest(
  verdict: AskingVerdict,
  request: PolicyRequest,
  stage: keyof typeof TITLES,
): NewInputRequest {
  const { arguments: about, ...policy_request } = request;
  const { scope, action, agent = {} } = request;
  return {
    request_id: newId('req'),
    kind: 'approval',
    stage,
    title: TITLES[stage],
    action,
    ...askerOf(verdict),
    policy_request,
    terms: verdict.terms,
    digest: digestOf({ scope, action, agent, ...about }),
  };
}
