import { expect, test } from 'vitest';
import type { Operation } from '../../../contracts/api/operation.js';
import { OPERATIONS } from '../../../contracts/api/operations.js';
import { ErrorBody } from '../../../contracts/primitives.js';
import { serveApi } from '../../api/served-api.js';

const api = await serveApi({ requestTimeoutMs: 3_000, sendWaitMs: 1_500 });
/** JSON-RPC: their errors ride on 200. */
const RPC_PATHS = [OPERATIONS.send.path, OPERATIONS.sendToType.path];

/** Wrong kinds of value in every field that a request has. */
const WRONG_NUMBERS = [null, true, -1, 1.5, 1e300];
const WRONG_TEXTS = ['', 'x'.repeat(100_000), '\ud800', '2026-13-45T99:99:99Z'];
const WRONG_VALUES = [...WRONG_NUMBERS, ...WRONG_TEXTS, [], [[]], {}, { a: 1 }];
const FIELDS = Object.values<Operation>(OPERATIONS)
  .filter(({ path }) => !RPC_PATHS.some((rpc) => rpc === path) && path !== '/auth/get_token')
  .flatMap(({ path, request }) => {
    const ofHeartbeat = { instance_id: 0, payload: 0, v: 0 };
    const shape = (request as { shape?: Record<string, unknown> } | undefined)?.shape ?? ofHeartbeat;
    return request ? Object.keys(shape).map((field): [string, string] => [path.replace(/:\w+/, 'msg_x'), field]) : [];
  });
/** So that no stream begins, which would have no end. */
const noStream = (path: string) => (path === OPERATIONS.streamEvents.path ? { last_event_id: 'evt_unknown' } : {});
test.each(FIELDS)('%s with anything in %s: never 500, always the one form', async (path, field) => {
  for (const value of WRONG_VALUES) {
    const answer = await api.client.post(path, { ...noStream(path), [field]: value });
    expect(answer.status, JSON.stringify([value, answer.body])?.slice(0, 300)).not.toBe(500);
    if (answer.status !== 200) ErrorBody.strict().parse(answer.body);
  }
});
