import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Operation } from '../../../contracts/api/operation.js';
import { OPERATIONS } from '../../../contracts/api/operations.js';
import { CLOSE_CODES, FRAME_ERROR_CODES, HTTP_ERRORS } from '../../../contracts/errors.js';
import { AGENT_FRAME_PAYLOADS, FRAME_TYPES } from '../../../contracts/frames.js';
import { ErrorBody } from '../../../contracts/primitives.js';
import { uuidv7 } from '../../../runtime/ids.js';
import { echo, type RawAgent } from '../../setup/agent.js';
import { almost } from '../../setup/garbage.js';
import { contradictions } from '../../setup/histories/record-checker.js';
import type { Answer } from '../../setup/platform/api-client.js';
import { openSocket, registerAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { runsOf, SEED } from '../../setup/seed.js';
import { joinType, to } from '../../system/fixture.js';

const BODIES_EACH = runsOf(4, 60);
const FRAMES_EACH = runsOf(2, 16);
const SENDERS = 6;

const { platform, database } = await startPlatform({ SEND_WAIT_MS: '300', QUEUE_WAIT_MS: '300' });
const { client } = platform;
await joinType(platform, 'echo', echo);

/** As much of the parameters of a send as matters here. */
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
const RPC = fc.record({
  jsonrpc: fc.constantFrom('2.0', '1.0'),
  id: fc.oneof(fc.integer(), fc.string(), fc.jsonValue()),
  method: fc.oneof(fc.constantFrom('message/send', 'message/stream', 'tasks/get'), fc.string()),
  params: almost(SEND_PARAMS),
});

/** Bodies as they go over the wire: near to what an operation takes, cut off, or anything. */
function bodies({ path, request = z.object({}) }: Operation): string[] {
  const values = path === OPERATIONS.send.path ? fc.oneof(almost(request), RPC) : almost(request);
  const json = values.map((value) => JSON.stringify(value));
  const broken = fc.tuple(json, fc.nat(40)).map(([text, cut]) => text.slice(0, cut));
  const any = fc.oneof({ weight: 8, arbitrary: json }, broken, fc.string(), fc.constant(''));
  return fc.sample(any, { numRuns: BODIES_EACH, seed: SEED });
}

/** A documented answer: never 500, and an error body whose code and status fit each other. */
function expectDocumented({ path, statuses }: Operation, { status, headers, body }: Answer, sent: string): void {
  if (status === 200) return;
  const context = `${path} answered ${status} to ${sent.slice(0, 300)}: ${JSON.stringify(body)}; TEST_SEED=${SEED}`;
  const error = ErrorBody.safeParse(body);
  expect(error.success, context).toBe(true);
  expect(HTTP_ERRORS[error.data?.code as keyof typeof HTTP_ERRORS], context).toBe(status);
  expect(status, context).not.toBe(500);
  expect(statuses, context).toContain(status);
  expect(headers.get('x-request-id'), context).toBe(error.data?.request_id);
}

async function expectAlive(): Promise<void> {
  await database.query('DELETE FROM agent_types'); // some of it may have allowed one, which keeps others out
  expect(platform.ended).toBeUndefined();
  expect((await client.get('/health')).status).toBe(200);
  expect((await client.send('still there?', to('echo'))).contextId).toMatch(/^ses_/);
  expect(platform.log()).not.toMatch(/"level":"fatal"|uncaught|unhandled rejection/i);
  expect(await contradictions(database)).toEqual([]);
}

test('garbage over HTTP has documented answers at every operation, and leaves the platform as it was', async () => {
  for (const operation of Object.values<Operation>(OPERATIONS).filter(({ method }) => method === 'POST')) {
    const url = operation.path.replace(/:\w+/, 'msg_00000000-0000-7000-8000-000000000000');
    const queue = bodies(operation);
    const sender = async () => {
      for (let body = queue.shift(); body !== undefined; body = queue.shift())
        expectDocumented(operation, await client.raw(url, body, await client.headers()), body);
    };
    await Promise.all(Array.from({ length: SENDERS }, sender));
  }
  await expectAlive();
}, 600_000);

const CLOSES: number[] = [...Object.values(CLOSE_CODES).filter((code) => code !== CLOSE_CODES.INTERNAL), 1007, 1009];
const agents: RawAgent[] = [];

async function socket(): Promise<RawAgent> {
  const last = agents.at(-1);
  if (last?.isOpen) return last;
  const agent = await openSocket(platform, 'garbage-1');
  agents.push(agent);
  await agent.hello();
  return agent;
}

/** Sends it and waits until the mesh has dealt with it: it answers a ping that follows, or it has closed the socket. */
async function deliver(data: string): Promise<void> {
  const target = await socket();
  target.sendRaw(data);
  const nonce = uuidv7();
  target.send('ping', { nonce });
  const pong = target.next((frame) => frame.type === 'pong' && frame.payload.nonce === nonce);
  const answered = await pong.catch(() => undefined);
  const after = `after ${data.slice(0, 300)}; TEST_SEED=${SEED}`;
  expect(answered !== undefined || !target.isOpen, `answered or closed ${after}`).toBe(true);
  if (target.isOpen) return;
  const { code } = await target.closed;
  expect(CLOSES, `closed with ${code} ${after}`).toContain(code);
}

/** Frames of a type with a payload that is not right, and envelopes that are not. */
function frames(type: string): string[] {
  const known = type in AGENT_FRAME_PAYLOADS;
  const schema: z.ZodType = known ? AGENT_FRAME_PAYLOADS[type as keyof typeof AGENT_FRAME_PAYLOADS] : z.object({});
  const envelope = {
    v: fc.constantFrom<unknown>(1, 1, 1, 2, '1', null),
    type: fc.constant(type),
    id: fc.oneof(fc.constant(uuidv7()), fc.uuid(), fc.string()),
    ts: fc.constantFrom('2024-01-01T00:00:00Z', '2024-01-01T00:00:00.000Z', 'yesterday', ''),
    in_reply_to: fc.oneof(fc.uuid(), fc.string(), fc.constant(null)),
    payload: almost(schema),
  };
  const record = fc.record(envelope, { requiredKeys: ['v', 'type', 'id', 'ts'] });
  return fc.sample(record, { numRuns: FRAMES_EACH, seed: SEED }).map((frame) => JSON.stringify(frame));
}

test('garbage in frames of every type is told or closes the socket, and leaves the platform as it was', async () => {
  await registerAgent(client, { instanceId: 'garbage-1', agentType: 'garbage' });
  for (const type of [...FRAME_TYPES, 'unheard_of']) for (const frame of frames(type)) await deliver(frame);
  const codes = new Set<string>(FRAME_ERROR_CODES);
  const errors = agents.flatMap(({ received }) => received).filter((frame) => frame.type === 'error');
  expect(errors.length).toBeGreaterThan(0);
  expect(errors.filter((frame) => !codes.has(String(frame.payload.code)))).toEqual([]);
  await expectAlive();
}, 600_000);
