import { expect, test } from 'vitest';
import { AgentError } from '../../sdk/agent/agent-error.js';
import { describeConnectionEnd, describeError } from '../../sdk/agent/describe-error.js';
import { stopReason, stopReasonOfError } from '../../sdk/agent/stop-reason.js';
import { ApiError, UnreachableError } from '../../sdk/client/api/errors.js';
import type { ConnectionEnd } from '../../sdk/connected/mesh-connection.js';

const API = 'https://user:secret@fleet.example/';
const MESH = 'wss://mesh.example:8443/agents/connect?instance_id=shop-1';

const system = (code: string) => Object.assign(new Error(code), { code });
const unreachable = (code: string) => new UnreachableError(API, system(code));
const answer = (status: number, code: string) => new ApiError('why', { status, code });

test.each<[unknown, string, RegExp]>([
  [unreachable('ECONNREFUSED'), 'UNREACHABLE', /nothing answers at https:\/\/fleet\.example \(.*FLEET_BASE_URL/],
  [
    new UnreachableError(API, Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })),
    'UNREACHABLE',
    /nothing/,
  ],
  [unreachable('ECONNRESET'), 'UNREACHABLE', /no answer from/],
  [unreachable('EAI_AGAIN'), 'UNKNOWN_HOST', /FLEET_BASE_URL/],
  [unreachable('CERT_SIGNATURE_FAILURE'), 'UNTRUSTED_CERTIFICATE', /FLEET_CA_FILE/],
  [unreachable('CERT_HAS_EXPIRED'), 'INVALID_CERTIFICATE', /renew/],
  [unreachable('ERR_TLS_CERT_ALTNAME_INVALID'), 'INVALID_CERTIFICATE', /name/],
  [unreachable('ERR_SSL_WRONG_VERSION_NUMBER'), 'NO_TLS', /http:\/\//],
  [new UnreachableError(API, new SyntaxError('<html>')), 'NOT_A_PLATFORM', /FLEET_BASE_URL/],
  [answer(301, 'HTTP_301'), 'HTTP_301', /redirect.*FLEET_BASE_URL/],
  [answer(503, 'SERVICE_UNAVAILABLE'), 'SERVICE_UNAVAILABLE', /answered 503/],
  [new Error('the vault is locked'), 'UNREACHABLE', /the vault is locked/],
  [new AgentError('MINE', 'as it is'), 'MINE', /^as it is$/],
])('a registration that failed with %s is %s', (error, code, message) => {
  const described = describeError(error, API);
  expect(described.code).toBe(code);
  expect(described.message).toMatch(message);
});

const ended = (end: Partial<ConnectionEnd>): ConnectionEnd => ({ code: '', message: 'why', ...end });

test.each<[Partial<ConnectionEnd>, string, RegExp]>([
  [{ httpStatus: 404, code: 'INSTANCE_NOT_FOUND' }, 'INSTANCE_NOT_FOUND', /refused the connection: why/],
  [{ httpStatus: 502 }, 'HTTP_502', /refused/],
  [{ timedOut: true, closeCode: 1006 }, 'MESH_SILENT', /wss:\/\/mesh\.example:8443 is silent: why/],
  [{ error: system('ECONNREFUSED'), closeCode: 1006 }, 'UNREACHABLE', /the platform named/],
  [{ error: system('SELF_SIGNED_CERT_IN_CHAIN'), closeCode: 1006 }, 'UNTRUSTED_CERTIFICATE', /FLEET_CA_FILE/],
  [{ closeCode: 1002, code: 'BAD_FRAME' }, 'BAD_FRAME', /BAD_FRAME: why/],
  [{ closeCode: 1006 }, 'CONNECTION_LOST', /1006/],
])('a connection that ended with %o is %s', (end, code, message) => {
  const described = describeConnectionEnd(ended(end), MESH);
  expect(described.code).toBe(code);
  expect(described.message).toMatch(message);
  expect(described.message).not.toContain('instance_id');
});

test.each<[Partial<ConnectionEnd>, string | undefined]>([
  [{ closeCode: 4409 }, 'REPLACED'],
  [{ closeCode: 1006, code: 'REPLACED' }, 'REPLACED'],
  [{ closeCode: 4410 }, 'DEREGISTERED'],
  [{ closeCode: 4403, code: 'POLICY_DENIED' }, 'POLICY_DENIED'],
  [{ closeCode: 1006, code: 'DEREGISTERED' }, 'DEREGISTERED'],
  [{ httpStatus: 404, code: 'DEREGISTERED' }, 'DEREGISTERED'],
  [{ httpStatus: 403, code: 'forbidden' }, 'forbidden'],
  [{ httpStatus: 401, code: 'UNAUTHORIZED' }, undefined],
  [{ httpStatus: 404, code: 'INSTANCE_NOT_FOUND' }, undefined],
  [{ httpStatus: 503, code: 'SERVICE_UNAVAILABLE' }, undefined],
  [{ closeCode: 1000 }, undefined],
  [{ closeCode: 4401, code: 'TOKEN_EXPIRED' }, undefined],
])('a connection that ended with %o stops the agent with %s', (end, code) => {
  expect(stopReason(ended(end))?.code).toBe(code);
});

test.each<[unknown, boolean, string | undefined, RegExp?]>([
  [answer(401, 'unauthorized'), true, 'unauthorized', /why.*FLEET_CLIENT_SECRET/],
  [answer(403, 'forbidden'), true, 'forbidden', /why.*`type`/],
  [answer(400, 'HTTP_400'), true, 'NOT_A_PLATFORM', /https:\/\/fleet.*FLEET_BASE_URL/],
  [answer(404, 'HTTP_404'), false, 'NOT_A_PLATFORM', /https:\/\/fleet.*FLEET_BASE_URL/],
  [answer(404, 'HTTP_404'), true, undefined],
  [answer(404, 'NOT_FOUND'), false, 'NOT_THE_API', /mesh.*FLEET_BASE_URL/],
  [answer(404, 'NOT_FOUND'), true, undefined],
  [answer(404, 'DEREGISTERED'), true, 'DEREGISTERED', /start it again/],
  [answer(426, 'UPGRADE_REQUIRED'), true, 'NOT_THE_API', /mesh.*FLEET_BASE_URL/],
  [answer(429, 'RATE_LIMITED'), false, undefined],
  [unreachable('ECONNREFUSED'), false, undefined],
])(
  'a registration that failed with %s, joined before: %s, stops the agent with %s',
  (error, hasJoined, code, remedy) => {
    const reason = stopReasonOfError(error, { url: API, hasJoined });
    expect(reason?.code).toBe(code);
    expect(reason?.message ?? '').toMatch(remedy ?? /^$/);
  },
);
