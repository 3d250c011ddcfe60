import { describe, expect, test } from 'vitest';
import type { Caller } from '../../contracts/api/auth.js';
import type { Operation } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { callRefusal, type TokenLimits } from '../../contracts/permissions.js';

const caller = (limits: TokenLimits): Caller => ({
  ...{ tenant_id: 'ten_1', agent_type: 'credential', sub: 'cred_1', credential_id: 'cred_1', iat: 0, exp: 0 },
  scopes: ['read'],
  ...limits,
});

/**
 * What a limited token reaches: each looks at the limits itself, as test/api/permissions.test.ts shows for each kind of token. An operation that is
 * not here is refused.
 */
const REACHED = [
  'initSession',
  'getSessions',
  'getSession',
  'closeSession',
  'interruptSessions',
  'send',
  'sendToType',
  'getMessages',
  'getMessage',
  'cancelMessage',
  'pendingMessages',
  'resolveMessage',
  'getRequests',
  'streamEvents',
  'streamEventsByQuery',
  'agentTypeCard',
];
/** Others' messages may be in a session. */
const NOT_BY_TYPES = ['closeSession', 'interruptSessions'];

describe('the operations that a limited token reaches', () => {
  const operations = Object.entries<Operation>(OPERATIONS).filter(([, { access }]) => access !== 'public');
  const reachedBy = (limits: TokenLimits) =>
    operations.filter(([, operation]) => callRefusal(operation, caller(limits)) === null).map(([name]) => name);

  test.each<[string, TokenLimits, string[]]>([
    ['a user', { user_id: 'ann' }, REACHED],
    ['a session', { session_id: 's' }, REACHED],
    ['a user’s agent types', { user_id: 'ann', agent_types_allowed: ['worker'] }, REACHED],
    ['agent types', { agent_types_allowed: [] }, REACHED.filter((name) => !NOT_BY_TYPES.includes(name))],
  ])('limited to %s', (_what, limits, reached) => {
    expect(new Set(reachedBy(limits))).toEqual(new Set(reached));
  });

  test('a refusal to end a session says what to do instead', () => {
    expect(callRefusal(OPERATIONS.closeSession, caller({ agent_types_allowed: ['worker'] }))).toMatch(
      /\/messages\/cancel, or limit the token by user_id or session_id/,
    );
  });
});
