import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Operation } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { CLOSE_CODES, FRAME_ERROR_CODES, HTTP_ERRORS } from '../../contracts/errors.js';
import { AGENT_FRAME_PAYLOADS, FRAME_TYPES } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { ErrorBody } from '../../contracts/primitives.js';
import { uuidv7 } from '../../runtime/ids.js';
import { echo, type RawAgent } from '../setup/agent.js';
import { almost, oneOff } from '../setup/garbage.js';
import { contradictions } from '../setup/histories/record-checker.js';
import type { Answer } from '../setup/platform/api-client.js';
import { joinAgent, openSocket, registerAgent } from '../setup/platform/fleet.js';
import { startPlatform } from '../setup/platform/platform.js';
import { SEED } from '../setup/seed.js';

/** A failure prints it; run it again with `TEST_SEED=…`. */
const BODIES_EACH = 40;
const FRAMES_EACH = 12;
const SENDERS = 6;

const shared = await startPlatform({ SEND_WAIT_MS: '300', QUEUE_WAIT_MS: '300' });
const { client } = shared.platform;
await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);

const rpc = (params: fc.Arbitrary<unknown>) =>
  fc.record({
    jsonrpc: fc.constantFrom('2.0', '1.0'),
    id: fc.oneof(fc.integer(), fc.string(), fc.jsonValue()),
    method: fc.oneof(fc.constantFrom('message/send', 'message/stream', 'tasks/get'), fc.string()),
    params,
  });

/** Bodies as they go over the wire. */
function bodies(operation: Operation): string[] {
  const request = operation.request ?? z.object({});
  const isSend = operation.path === '/send';
  const values = isSend ? fc.oneof(almost(request), rpc(almost(SEND_PARAMS))) : almost(request);
  const json = values.map((value) => JSON.stringify(value));
  const broken = fc.tuple(json, fc.nat(40)).map(([text, cut]) => text.slice(0, cut));
  const any = fc.oneof({ weight: 8, arbitrary: json }, broken, fc.string(), fc.constant(''));
  const off = isSend ? oneOffMessages() : oneOff(request);
  const texts = off.map((value) => JSON.stringify(value));
  return [...fc.sample(any, { numRuns: BODIES_EACH, seed: SEED }), ...texts, ...EXTREMES];
}

/** Sends with one wrong member in the message, in its metadata or beside them. */
function oneOffMessages(): unknown[] {
  const message = { kind: 'message', messageId: 'x', role: 'user', parts: [{ kind: 'text', text: 'x' }] };
  const { message: messages, metadata, configuration } = SEND_PARAMS.shape;
  const params = [
    ...oneOff(messages).map((wrong) => ({ message: { ...message, ...(wrong as object) } })),
    ...oneOff(metadata).map((wrong) => ({ message, metadata: wrong })),
    ...oneOff(configuration).map((wrong) => ({ message, configuration: wrong })),
  ];
  return params.map((each) => ({ jsonrpc: '2.0', id: 1, method: 'message/send', params: each }));
}
const SEND_PARAMS = z.object({
  message: z.object({
    kind: z.literal('message'),
    messageId: z.string(),
    role: z.literal('user'),
    parts: z.array(z.object({ kind: z.literal('text'), text: z.string() })),
    taskId: z.string().optional(),
    contextId: z.string().optional(),
  }),
  metadata: z.object({ deadline_ms: z.number(), agent_type: z.string(), instance_id: z.string() }).partial(),
  configuration: z.object({ blocking: z.boolean(), historyLength: z.number() }).partial(),
});
const EXTREMES = [
  '['.repeat(100_000),
  `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
  `{"a":"${'x'.repeat(LIMITS.bodyBytes)}"}`,
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{"admin":true}}}',
  '"\\u0000"',
];

/** A documented answer: never 500, and an error body whose code and status fit each other. */
function expectDocumented(operation: Operation, answer: Answer, sent: string): void {
  const context = `${operation.path} answered ${answer.status} to ${sent.slice(0, 300)}: ${JSON.stringify(answer.body)}`;
  if (answer.status === 200) return;
  const body = ErrorBody.safeParse(answer.body);
  expect(body.success, context).toBe(true);
  expect(HTTP_ERRORS[body.data?.code as keyof typeof HTTP_ERRORS], context).toBe(answer.status);
  expect(answer.status, context).not.toBe(500);
  expect([...operation.statuses, 405], context).toContain(answer.status);
  expect(answer.headers.get('x-request-id'), context).toBe(body.data?.request_id);
}

async function expectAlive(): Promise<void> {
  expect(shared.platform.ended).toBeUndefined();
  expect((await client.get('/health')).status).toBe(200);
  expect((await client.send('still there?', { metadata: { agent_type: 'echo' } })).contextId).toMatch(/^ses_/);
  expect(shared.platform.log()).not.toMatch(/"level":"fatal"|uncaught|unhandled rejection/i);
  expect(await contradictions(shared.database)).toEqual([]);
}

describe('garbage over HTTP', () => {
  // A type that some of it happened to allow would keep the agents of what follows out.
  afterAll(() => shared.database.query('DELETE FROM agent_types'));

  const posts = Object.values(OPERATIONS).filter((operation) => operation.method === 'POST') as Operation[];

  test.each(posts.map((operation) => [operation.path, operation] as const))('to %s', async (path, operation) => {
    const url = path.replace(':id', 'msg_00000000-0000-7000-8000-000000000000');
    const queue = bodies(operation);
    const sender = async () => {
      for (let body = queue.shift(); body !== undefined; body = queue.shift()) {
        expectDocumented(operation, await client.raw(url, body, await client.headers()), body);
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, sender));
  });

  test('with other content types, tokens, methods and paths', async () => {
    const headers = await client.headers();
    for (const operation of Object.values(OPERATIONS) as Operation[]) {
      const tries: [string, Record<string, string>, string][] = [
        ['{}', { ...headers, 'content-type': 'text/plain' }, 'POST'],
        ['{}', { ...headers, 'content-type': 'application/json; charset=utf-16' }, 'POST'],
        ['{}', { ...headers, authorization: 'Bearer a.b.c' }, 'POST'],
        ['{}', { ...headers, authorization: `Bearer ${'x'.repeat(6_000)}` }, 'POST'],
        ['{}', { ...headers, 'x-request-id': 'x'.repeat(3_000) }, 'POST'],
        ['{}', headers, 'PUT'],
        ['{}', headers, 'DELETE'],
      ];
      for (const [body, given, method] of tries) {
        const answer = await client.raw(operation.path.replace(':id', '%00'), body, given, method);
        expectDocumented(operation, answer, `${method} ${JSON.stringify(given)}`);
      }
    }
    for (const path of ['/%', '/%00', '/..%2f..%2fetc', '/sessions/init//', '/nothing', `/${'a'.repeat(10_000)}`]) {
      const answer = await client.raw(path, '{}', headers);
      expect([400, 404, 414]).toContain(answer.status);
    }
  });

  test('leaves the platform as it was', expectAlive);
});

describe('garbage over WebSocket', () => {
  const CLOSES: number[] = [...Object.values(CLOSE_CODES).filter((code) => code !== CLOSE_CODES.INTERNAL), 1007, 1009];
  const agents: RawAgent[] = [];

  async function socket(withHello: boolean): Promise<RawAgent> {
    const last = agents.at(-1);
    if (last?.isOpen) return last;
    const agent = await openSocket(shared.platform, 'garbage-1');
    agents.push(agent);
    if (withHello) await agent.hello();
    return agent;
  }

  /** Sends it and waits until the mesh has dealt with it: it answers a ping that follows, or it has closed the socket. */
  async function deliver(data: string | Buffer, withHello: boolean): Promise<void> {
    const target = await socket(withHello);
    target.sendRaw(data);
    const nonce = uuidv7();
    target.send('ping', { nonce });
    const pong = target.next((frame) => frame.type === 'pong' && frame.payload.nonce === nonce);
    const answered = await pong.catch(() => undefined);
    expect(answered !== undefined || !target.isOpen, `answered or closed after ${data.toString().slice(0, 300)}`).toBe(
      true,
    );
    if (target.isOpen) return;
    const { code } = await target.closed;
    expect(CLOSES, `closed with ${code} after ${data.toString().slice(0, 300)}`).toContain(code);
  }

  /** Frames of a type with a payload that is not right, and envelopes that are not. */
  function frames(type: string): string[] {
    const schema: z.ZodType =
      type in AGENT_FRAME_PAYLOADS ? AGENT_FRAME_PAYLOADS[type as keyof typeof AGENT_FRAME_PAYLOADS] : z.object({});
    const envelope = fc.record(
      {
        v: fc.constantFrom<unknown>(1, 1, 1, 2, '1', null),
        type: fc.constant(type),
        id: fc.oneof(fc.constant(uuidv7()), fc.uuid(), fc.string()),
        ts: fc.constantFrom('2024-01-01T00:00:00Z', '2024-01-01T00:00:00.000Z', 'yesterday', ''),
        in_reply_to: fc.oneof(fc.uuid(), fc.string(), fc.constant(null)),
        payload: almost(schema),
      },
      { requiredKeys: ['v', 'type', 'id', 'ts'] },
    );
    return fc.sample(envelope, { numRuns: FRAMES_EACH, seed: SEED }).map((frame) => JSON.stringify(frame));
  }

  beforeAll(() => registerAgent(client, { instanceId: 'garbage-1', agentType: 'garbage' }));

  test.each([...FRAME_TYPES, 'unheard_of'])('in frames of type %s', async (type) => {
    for (const frame of frames(type)) await deliver(frame, true);
    const codes = new Set<string>(FRAME_ERROR_CODES);
    const errors = agents.flatMap(({ received }) => received).filter((frame) => frame.type === 'error');
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.filter((frame) => !codes.has(String(frame.payload.code)))).toEqual([]);
  });

  test('in what is no frame at all, before hello and after it', async () => {
    const raw = [
      '',
      '{',
      'null',
      '[]',
      '"x"',
      '\u0000',
      '['.repeat(100_000),
      `"${'x'.repeat(LIMITS.frameBytes + 1)}"`,
      Buffer.from([0, 1]),
    ];
    for (const withHello of [true, false]) {
      for (const data of raw) await deliver(data, withHello);
    }
  });

  test('leaves the platform as it was', expectAlive);
});
