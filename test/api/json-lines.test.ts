import { setImmediate as nextTurn } from 'node:timers/promises';
import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { JsonLines } from '../../api/json-lines.js';
import { useErrorContract } from '../../api/plugins/error-contract.js';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Caller } from '../../contracts/api/auth.js';
import { LIMITS } from '../../contracts/limits.js';
import { PlatformError } from '../../runtime/errors.js';
import { cleanUp } from '../setup/clean-up.js';
import { until } from '../setup/until.js';

/** Streams without an end, of one tenant. */
async function served() {
  const state = { isRevoked: false, ended: 0 };
  const caller = { tenant_id: 'ten_1' } as Caller;
  const authenticator = {
    authenticate: async () => {
      if (state.isRevoked) throw new PlatformError('unauthorized', 'It was revoked.');
      return caller;
    },
  } as unknown as Authenticator;
  const jsonLines = new JsonLines({ authenticator, clocks: { credentialCheckMs: 20 } });
  const items = async function* () {
    try {
      for (;;) {
        yield { n: 1 };
        await nextTurn();
      }
    } finally {
      state.ended += 1;
    }
  };
  const app = fastify();
  useErrorContract(app);
  app.decorateRequest('caller', null);
  app.get('/', async (request, reply) => {
    request.caller = caller;
    return jsonLines.answer(request, reply, z.object({ n: z.int() }), items());
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  cleanUp(() => app.close());
  const open = () => fetch(url, { headers: { authorization: 'Bearer a' } });
  return { open, state };
}

test('a stream breaks off when its token ends, so that nobody takes it for a whole one', async () => {
  const { open, state } = await served();
  const whole = (await open()).text();
  state.isRevoked = true;
  await expect(whole).rejects.toThrow('terminated');
  await until(() => state.ended === 1, { what: 'the end of what was read' });
});

test('a tenant has a bound of open streams, and a reader that leaves makes room', async () => {
  const { open } = await served();
  const all = await Promise.all(Array.from({ length: LIMITS.exportsPerTenant }, open));
  expect(all.map(({ status }) => status)).toEqual(all.map(() => 200));
  const refused = await open();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
  await all[0]?.body?.cancel();
  const next = await until(async () => {
    const answer = await open();
    return answer.status === 200 ? answer : undefined;
  });
  for (const { body } of [...all.slice(1), next]) await body?.cancel();
});
