import { randomBytes } from 'node:crypto';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { useErrorContract } from '../../api/plugins/error-contract.js';
import { temporalCodecRoutes } from '../../api/routes/operations/temporal-codec.js';
import { hideFailures } from '../../platform/roles/hidden-failures.js';
import { readConfig } from '../../runtime/config.js';
import { createDataConverter } from '../../runtime/payload-codec.js';
import { createSecrets } from '../../runtime/secrets.js';

const [key, next, foreign] = [1, 2, 3].map(() => randomBytes(32).toString('base64')) as [string, string, string];
const CODEC_KEY = randomBytes(32).toString('hex');
const codecOf = (secrets: ReturnType<typeof createSecrets>, encryption: 'on' | 'off') => {
  const [codec] = createDataConverter(secrets, { FLEET_TEMPORAL_ENCRYPTION: encryption }).payloadCodecs ?? [];
  if (!codec) throw new Error('no codec');
  return codec;
};
const payload = { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('"what an agent wrote"') };
const jsonOf = ({ metadata, data }: { metadata?: object | null; data?: Uint8Array | null }) => ({
  metadata: Object.fromEntries(
    Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
  ),
  data: Buffer.from(data ?? []).toString('base64'),
});

test('what is encrypted is read by whoever has the key, with encryption on or off, and by nobody else', async () => {
  const [sealed = {}] = await codecOf(createSecrets(key), 'on').encode([payload]);
  expect(Buffer.from(sealed.metadata?.encoding ?? []).toString()).toBe('binary/encrypted');
  expect(Buffer.from(sealed.data ?? []).toString('latin1')).not.toContain('wrote');
  const plain = [expect.objectContaining({ data: payload.data })];
  expect(await codecOf(createSecrets(key), 'off').decode([sealed])).toEqual(plain);
  expect(await codecOf(createSecrets(next, [key]), 'on').decode([sealed])).toEqual(plain);
  expect(await codecOf(createSecrets(key), 'on').decode([payload])).toEqual([payload]);
  await expect(codecOf(createSecrets(foreign), 'on').decode([sealed])).rejects.toThrow('cannot be read');
  expect(await codecOf(createSecrets(key), 'off').encode([payload])).toEqual([payload]);
});

/** The codec endpoint with a key, or without one. */
async function endpoint(codecKey: string | undefined) {
  const app = fastify();
  useErrorContract(app);
  const config = readConfig(codecKey === undefined ? {} : { FLEET_TEMPORAL_CODEC_KEY: codecKey });
  temporalCodecRoutes(app, { config, secrets: createSecrets(key) });
  return (payloads: unknown, authorization?: string) =>
    app.inject({
      method: 'POST',
      url: '/temporal/codec/decode',
      payload: { payloads } as object,
      headers: authorization === undefined ? {} : { authorization },
    });
}

test('the codec endpoint decrypts for its key alone, and is not there without one', async () => {
  const sealed = await codecOf(createSecrets(key), 'on').encode([payload]);
  const others = await codecOf(createSecrets(foreign), 'on').encode([payload]);
  const decode = await endpoint(CODEC_KEY);
  const answer = await decode([...sealed.map(jsonOf), jsonOf(payload)], `Bearer ${CODEC_KEY}`);
  expect(answer.json()).toEqual({ payloads: [jsonOf(payload), jsonOf(payload)] });
  const cases: [status: number, payloads: unknown, authorization?: string][] = [
    [401, sealed.map(jsonOf)],
    [401, sealed.map(jsonOf), `Bearer ${CODEC_KEY.slice(1)}0`],
    [400, others.map(jsonOf), `Bearer ${CODEC_KEY}`],
    [400, [{ data: 'no base64!' }], `Bearer ${CODEC_KEY}`],
    [400, 'none', `Bearer ${CODEC_KEY}`],
  ];
  for (const [status, payloads, authorization] of cases)
    expect((await decode(payloads, authorization)).statusCode).toBe(status);
  expect((await (await endpoint(undefined))([], `Bearer ${CODEC_KEY}`)).statusCode).toBe(404);
});

test.each<[what: string, error: Error, expected: object]>([
  ['an error', new Error('the agent said: my password is …'), { type: 'Error', message: 'Error' }],
  ['an error with a code', Object.assign(new Error('a secret'), { code: '53100' }), { message: '53100' }],
  [
    'a failure that says when to try again',
    ApplicationFailure.create({ type: 'RATE_LIMITED', message: 'a secret', nextRetryDelay: 2_500 }),
    { type: 'RATE_LIMITED', message: 'RATE_LIMITED', nextRetryDelay: 2_500 },
  ],
  ['a cancel', new CancelledFailure('CANCELLED'), { message: 'CANCELLED' }],
])('of %s Temporal gets no text, and the log has it', async (_what, error, expected) => {
  const logged: string[] = [];
  const log = { warn: (fields: unknown) => logged.push(JSON.stringify(fields)) } as never;
  const execute = hideFailures(log)({ info: {} } as never).inbound?.execute;
  const failed = execute?.({} as never, () => Promise.reject(error));
  await expect(failed).rejects.toMatchObject(expected);
  await expect(failed).rejects.not.toMatchObject({ cause: expect.anything() });
  expect(logged).toEqual(error instanceof CancelledFailure ? [] : [expect.stringContaining(error.message)]);
});
