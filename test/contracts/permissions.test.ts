import { describe, expect, test } from 'vitest';
import type { Caller } from '../../contracts/api/auth.js';
import {
  answerRefusal,
  callRefusal,
  isOwnMessage,
  isOwnType,
  isSentBy,
  mayActFor,
  namesSlackUser,
  tokenRefusal,
} from '../../contracts/permissions.js';
import type { Scope } from '../../contracts/primitives.js';

function caller(agent_type: string, scope: Scope, credential_id = 'cred_1'): Caller {
  return { tenant_id: 'ten_1', agent_type, scopes: [scope], sub: credential_id, credential_id, iat: 0, exp: 0 };
}

describe('which agent_type a token of a credential may have', () => {
  test.each<[Scope[], string[], string, boolean]>([
    [['read'], [], 'credential', true],
    [['read'], [], 'painter', false],
    [['read'], ['painter'], 'credential', false],
    [['read'], ['painter'], 'painter', true],
    [['read'], ['painter'], 'plumber', false],
    [['read'], ['*'], 'anything', true],
    [['read'], ['*'], 'credential', false],
    [['read', 'admin'], ['painter'], 'credential', true],
    [['admin'], ['painter'], 'painter', true],
    [['admin'], ['painter'], 'plumber', false],
    [['admin'], ['*'], 'plumber', true],
    [['full'], ['painter'], 'credential', true],
    [['full'], [], 'anything', true],
  ])('scopes %j, agent_types %j: %s is allowed: %s', (scopes, agent_types, agentType, allowed) => {
    expect(tokenRefusal({ scopes, agent_types }, agentType) === null).toBe(allowed);
  });

  test('a refusal names the types that may be asked for', () => {
    const credential = { scopes: ['read' as const], agent_types: ['painter', 'plumber'] };
    expect(tokenRefusal(credential, 'credential')).toContain('painter, plumber');
    expect(tokenRefusal(credential, 'baker')).toContain('painter, plumber');
    const anyType = { scopes: ['read' as const], agent_types: ['*'] };
    expect(tokenRefusal(anyType, 'credential')).toContain('It may ask for: any agent type.');
  });
});

test.each([
  ['read', 'open', 'credential', 'read', true],
  ['admin', 'open', 'credential', 'read', false],
  ['admin', 'open', 'credential', 'full', true],
  ['optional', 'own', 'credential', 'read', true],
  ['read', 'own', 'worker', 'read', true],
  ['read', 'forbidden', 'worker', 'read', false],
  ['read', 'forbidden', 'worker', 'full', false],
  ['read', 'forbidden', 'credential', 'read', true],
  ['optional', 'forbidden', 'worker', 'full', false],
  ['full', 'forbidden', 'worker', 'full', false],
  ['full', 'own', 'worker', 'read', false],
  ['public', 'forbidden', 'worker', 'read', true],
] as const)(
  'an operation for %s, agents %s, may be called as %s with %s: %s',
  (access, agents, type, scope, allowed) => {
    expect(callRefusal({ access, agents, path: '/x' }, caller(type, scope)) === null).toBe(allowed);
  },
);

test.each([
  ['credential', 'full', true],
  ['credential', 'admin', false],
  ['credential', 'read', false],
  ['worker', 'read', true],
  ['painter', 'read', false],
  ['painter', 'full', false],
] as const)('%s with %s acts for a worker where that needs full: %s', (type, scope, allowed) => {
  expect(mayActFor(caller(type, scope), 'worker', 'full')).toBe(allowed);
});

test.each([
  ['credential', { agent_type: 'worker', sender_agent_type: null }, true, true],
  ['credential', { agent_type: null, sender_agent_type: 'painter' }, true, true],
  ['worker', { agent_type: 'worker', sender_agent_type: null }, true, false],
  ['worker', { agent_type: 'painter', sender_agent_type: 'worker' }, true, true],
  ['worker', { agent_type: null, sender_agent_type: 'worker' }, true, true],
  ['worker', { agent_type: 'painter', sender_agent_type: null }, false, false],
  ['worker', { agent_type: null, sender_agent_type: null }, false, false],
] as const)('to %s a message of %o is there: %s, and its own: %s', (agent_type, message, there, sent) => {
  const owners = { ...message, want_agent_type: null, user_id: 'ann', session_id: 's' };
  expect(isOwnMessage({ agent_type }, owners)).toBe(there);
  expect(isSentBy({ agent_type }, message)).toBe(sent);
});

test('an agent of another type is not there for an agent', () => {
  expect(isOwnType({ agent_type: 'credential' }, 'worker')).toBe(true);
  expect(isOwnType({ agent_type: 'worker' }, 'worker')).toBe(true);
  expect(isOwnType({ agent_type: 'painter' }, 'worker')).toBe(false);
});

test.each([
  // claim, scope, source, an agent's doing, registered with, may answer
  ['credential', 'read', 'agent', true, 'cred_2', true],
  ['credential', 'read', 'agent', true, null, true],
  ['credential', 'read', 'agent', true, 'cred_1', false],
  ['credential', 'admin', 'agent', true, 'cred_1', false],
  ['credential', 'full', 'agent', true, 'cred_1', true],
  ['credential', 'read', 'policy', false, 'cred_2', false],
  ['credential', 'admin', 'policy', false, 'cred_1', true],
  ['credential', 'admin', 'policy', true, 'cred_1', false],
  ['credential', 'admin', 'guard', true, 'cred_1', false],
  ['credential', 'full', 'policy', true, 'cred_1', true],
  ['credential', 'admin', 'guard', true, 'cred_2', true],
  ['worker', 'read', 'agent', true, 'cred_2', false],
  ['worker', 'full', 'agent', true, 'cred_2', false],
  ['painter', 'full', 'agent', true, 'cred_2', false],
  ['painter', 'full', 'policy', false, 'cred_2', false],
] as const)(
  '%s with %s answers what %s asks, by an agent: %s, registered with %s: %s',
  (type, scope, source, by_agent, registered_with, may) => {
    const question = { source, by_agent, registered_with, approvers: [], sent_with: ['cred_1'], allow_self: true };
    expect(answerRefusal(caller(type, scope), question) === null).toBe(may);
  },
);

test.each([
  // claim, scope, source, approvers, sent with, allow_self, may answer
  ['credential', 'read', 'policy', ['cred_1'], 'cred_2', true, true],
  ['credential', 'read', 'policy', ['cred_2'], 'cred_2', true, false],
  ['credential', 'read', 'guard', ['read'], 'cred_2', true, true],
  ['credential', 'read', 'policy', ['scope:read'], 'cred_2', true, true],
  ['credential', 'read', 'policy', ['scope:admin', 'full', 'U1', 'slack:U1'], 'cred_2', true, false],
  ['credential', 'admin', 'policy', ['cred_2'], 'cred_2', true, true],
  ['credential', 'admin', 'policy', [], 'cred_1', false, false],
  ['credential', 'full', 'plan', ['cred_1'], 'cred_1', false, false],
  ['credential', 'admin', 'policy', [], 'cred_2', false, true],
  ['worker', 'full', 'policy', ['cred_1', 'read'], 'cred_2', true, false],
] as const)(
  '%s with %s decides what %s asks of %j, sent by %s, allow_self %s: %s',
  (type, scope, source, approvers, sent_with, allow_self, may) => {
    const question = {
      source,
      by_agent: false,
      registered_with: null,
      approvers,
      sent_with: ['cred_first', sent_with],
      allow_self,
    };
    expect(answerRefusal(caller(type, scope), question) === null).toBe(may);
  },
);

test('approvers name a Slack user by its id, with or without the prefix', () => {
  expect(namesSlackUser(['cred_1', 'slack:U1'], 'U1')).toBe(true);
  expect(namesSlackUser(['U1'], 'U1')).toBe(true);
  expect(namesSlackUser(['U10', 'slack:U2'], 'U1')).toBe(false);
});
