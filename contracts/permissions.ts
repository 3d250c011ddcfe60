import type { Caller, Credential } from './auth.js';
import type { Operation } from './operation.js';
import { ANY_AGENT_TYPE, NO_AGENT, type Scope, scopeIncludes } from './primitives.js';

/**
 * Who may do what (decisions.md, Auth). A token whose `agent_type` is not `credential` acts as an agent, whatever its scopes: for its own
 * type, on the sessions and messages that its type serves or that it sent. Every check of the platform comes from here.
 */

/** Whose records a read may show: those of the tenant, or of one agent type in it. */
export type Reader = Pick<Caller, 'tenant_id' | 'agent_type'>;

/** The type of the agent that a token acts as; null for one that acts for the tenant. */
export function actsAs({ agent_type }: Pick<Caller, 'agent_type'>): string | null {
  return agent_type === NO_AGENT ? null : agent_type;
}

/** Why a credential gets no token with this `agent_type`; null when it does. */
export function tokenRefusal(credential: Pick<Credential, 'scopes' | 'agent_types'>, agentType: string): string | null {
  const { scopes, agent_types } = credential;
  const named = agent_types.join(', ');
  if (agentType === NO_AGENT) {
    const isForAgents = agent_types.length > 0 && !scopeIncludes(scopes, 'admin');
    return isForAgents ? `agent_type: the credential is for agents. It may ask for: ${named}.` : null;
  }
  const allowed =
    scopeIncludes(scopes, 'full') || agent_types.includes(agentType) || agent_types.includes(ANY_AGENT_TYPE);
  return allowed
    ? null
    : `agent_type: the credential may not ask for this agent type. It may ask for: ${named || 'none'}.`;
}

/** Why a token may not call an operation at all; null when it may. */
export function callRefusal(operation: Pick<Operation, 'access' | 'agents'>, caller: Caller): string | null {
  const { access, agents } = operation;
  if (access === 'public') return null;
  const scope = access === 'optional' ? 'read' : access;
  if (!scopeIncludes(caller.scopes, scope)) return `This needs the scope ${scope}.`;
  return agents === 'forbidden' && actsAs(caller) !== null ? 'A token that acts as an agent may not do this.' : null;
}

/**
 * Whether a token may act for agents of a type: one that acts as an agent for its own type only, any other by its scope.
 * @param scope what a token that acts for the tenant needs
 */
export function mayActFor(caller: Caller, agentType: string, scope: Scope): boolean {
  const own = actsAs(caller);
  return own === null ? scopeIncludes(caller.scopes, scope) : own === agentType;
}

/** Whether an agent, or what belongs to one, is there for a reader. */
export function isOwnType(reader: Pick<Reader, 'agent_type'>, agentType: string): boolean {
  const own = actsAs(reader);
  return own === null || own === agentType;
}

/** Whose a message is: the type that serves it, and the type of the agent that sent it. */
export interface MessageOwners {
  agent_type: string | null;
  sender_agent_type: string | null;
}

/** Whether a message is there for a reader: one that acts as an agent sees what its type serves or has sent. */
export function isOwnMessage(reader: Pick<Reader, 'agent_type'>, message: MessageOwners): boolean {
  const own = actsAs(reader);
  return own === null || own === message.agent_type || own === message.sender_agent_type;
}

/** Whether a message was sent by the reader, as far as agents are told apart. */
export function isSentBy(
  reader: Pick<Reader, 'agent_type'>,
  message: Pick<MessageOwners, 'sender_agent_type'>,
): boolean {
  const own = actsAs(reader);
  return own === null || own === message.sender_agent_type;
}

/** Who asks a human, as far as it decides who may answer. */
export interface OpenQuestion {
  source: 'policy' | 'guard' | 'agent' | 'plan';
  /** The credential that the asking instance was registered with; null where that is not known. */
  registered_with: string | null;
}

/** Why a caller answers nothing at all, whatever it is about; null when that depends on the question. */
export function anyAnswerRefusal(caller: Pick<Caller, 'agent_type'>): string | null {
  return actsAs(caller) === null ? null : 'A token that acts as an agent answers nothing that a human is asked.';
}

/** Why a caller may not answer what a human is asked; null when it may. */
export function answerRefusal(caller: Caller, { source, registered_with }: OpenQuestion): string | null {
  const refusal = anyAnswerRefusal(caller);
  if (refusal !== null) return refusal;
  const needed = source === 'agent' ? 'read' : 'admin';
  if (!scopeIncludes(caller.scopes, needed)) return `Answering this request needs the scope ${needed}.`;
  const asksItself = source === 'agent' && registered_with === caller.credential_id;
  if (!asksItself || scopeIncludes(caller.scopes, 'full')) return null;
  return 'The credential that the asking agent was registered with does not answer its questions.';
}
