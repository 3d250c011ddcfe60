// @module-tag once
import { expect, test } from 'vitest';
import { Task } from '../../../../contracts/a2a/a2a.js';
import { cleanUp } from '../../../setup/clean-up.js';
import { leftovers } from '../../../setup/histories/record-checker.js';
import { type MessageStep, MessageSteps } from '../../../setup/message-steps.js';
import { JournalingAgent } from '../../../setup/platform/fleet.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';
import { until } from '../../../setup/until.js';

const STEPS: MessageStep[] = ['accepting', 'early', 'late', 'storing', 'unread'];
const TERMINAL = ['completed', 'failed', 'canceled'];
/** Longer than sockets and statements wait, and less than what a mesh node is taken for dead after. */
const SHORT_MS = 10_500;
const SETTLE_MS = 90_000;

// With so many connections several calls of one tenant may wait for locks at once.
const shared = await startPlatform({ QUEUE_WAIT_MS: '120000', DATABASE_POOL_MAX: '40' });
/** The one that is stopped; the agent is connected to it. */
const first = shared.platform;
/** The one that goes on. */
const second = await shared.startPeer();
let steps: MessageSteps;
const agents: JournalingAgent[] = [];
cleanUp(() => Promise.all(agents.map((agent) => agent.stop())));
await join(first, 'first-agent');

async function join(platform: TestPlatform, instanceId: string): Promise<void> {
  const options = { instanceId, agentType: 'worker', maxConcurrentSessions: 0, keepsWork: true };
  agents.push(await new JournalingAgent(platform, options, (dispatch) => steps.behaviour(dispatch)).start());
}

const nodes = async () => (await shared.database.query('SELECT 1 FROM mesh_nodes')).length;

interface Recorded {
  message_id: string;
  text: string;
  state: string;
  error_code: string | null;
  answer: string | null;
}

/** The messages of these steps, by text. */
async function messages(): Promise<Map<string, Recorded>> {
  const rows = await shared.database.query<Recorded>(
    `SELECT message_id, parts -> 0 ->> 'text' AS text, state, error_code, artifacts #>> '{0,parts,0,text}' AS answer FROM messages
      WHERE parts -> 0 ->> 'text' = ANY ($1)`,
    [steps.texts(...STEPS)],
  );
  return new Map(rows.map((row) => [row.text, row]));
}

const notEnded = async () => [...(await messages()).values()].filter(({ state }) => !TERMINAL.includes(state));

/**
 * Whether the second process has removed the node of the first. A result that waited for a lock is on the record by then; an accept that did may
 * be, or is tried again by the first process.
 */
async function isTakenForDead(): Promise<boolean> {
  const recorded = await messages();
  return (await nodes()) === 1 && steps.texts('early', 'late', 'storing').every((text) => recorded.has(text));
}

/** The texts of these that agents were given, as often as they were. */
const given = (recorded: Map<string, Recorded>) =>
  agents.flatMap(({ journal }) => journal.map(({ text }) => text)).filter((text) => recorded.has(text));

/** Stops the first process; locks are let go, requests come and the agent answers; continues it after `meanwhile`. */
async function whileStopped(meanwhile: () => Promise<unknown>): Promise<void> {
  first.pause();
  try {
    await steps.releaseLocks();
    steps.sendUnread('worker');
    steps.answer('early');
    await meanwhile();
  } finally {
    first.resume();
  }
}

const untilThen = (what: string, condition: () => boolean | Promise<boolean>) =>
  until(condition, { timeoutMs: SETTLE_MS, what });

/**
 * Each message has ended, and each caller got its task, in a state that the record has not taken back. No message reached an agent twice, and the
 * record does not contradict itself. @returns how each ended: its answer, or why it failed
 */
async function endsOfAll(): Promise<Map<string, Recorded>> {
  const all = steps.texts(...STEPS);
  const open = async () => {
    const recorded = await messages();
    return all.filter((text) => !TERMINAL.includes(recorded.get(text)?.state ?? ''));
  };
  await until(async () => (await open()).length === 0 || Promise.reject(new Error((await open()).join('; '))), {
    timeoutMs: SETTLE_MS,
    what: 'the end of every message',
  });
  const recorded = await messages();
  for (const text of all) {
    const answer = await steps.answerTo(text);
    expect([text, answer.status, answer.error]).toEqual([text, 200, undefined]);
    const task = Task.parse(answer.result);
    const { message_id, state } = recorded.get(text) as Recorded;
    expect([text, task.id]).toEqual([text, message_id]);
    if (TERMINAL.includes(task.status.state)) expect([text, task.status.state]).toEqual([text, state]);
  }
  const ids = agents.flatMap(({ journal }) => journal.map(({ message_id }) => message_id));
  expect(ids).toEqual([...new Set(ids)]);
  await steps.closeSessions(second.client);
  await until(async () => (await leftovers(shared.database)).length === 0).catch(() => undefined);
  expect(await leftovers(shared.database)).toEqual([]);
  return recorded;
}

/** @param orLost whether the agent has done it or not may be unknown to whoever took it over while its process was gone */
function expectCompleted(recorded: Map<string, Recorded>, completed: MessageStep[], orLost: MessageStep[] = []): void {
  const mayBeLost = steps.texts(...orLost);
  for (const text of [...steps.texts(...completed), ...mayBeLost]) {
    const { state, error_code, answer } = recorded.get(text) as Recorded;
    const lost = mayBeLost.includes(text) ? ['AGENT_DISCONNECTED'] : [];
    expect([`completed: done: ${text}`, ...lost]).toContain(error_code ?? `${state}: ${answer}`);
  }
}

/** Brings messages to every step from accepting to storing the result (`STEPS`). */
async function prepare(round: string): Promise<void> {
  steps = new MessageSteps(round, first.client, shared.database);
  await until(async () => (await nodes()) === 2, { what: 'both nodes' });
  await steps.prepare('first-agent');
}

test('a process that stands still too short to be taken for dead completes every message', async () => {
  await prepare('short');
  const began = performance.now();
  await whileStopped(() => untilThen('the time', () => performance.now() - began > SHORT_MS));
  expect(await nodes()).toBe(2);
  steps.answer('late');
  expectCompleted(await endsOfAll(), STEPS);
}, 240_000);

test('one that does until its node is taken for dead sends nothing twice, and one result is accepted', async () => {
  await prepare('takeover');
  await whileStopped(async () => {
    await join(second, 'second-agent');
    await untilThen('the takeover', isTakenForDead);
    steps.answer('late');
  });
  expectCompleted(await endsOfAll(), ['storing', 'unread'], ['accepting', 'early', 'late']);
}, 300_000);

test('one that does until another has ended its messages sends nothing of them and changes nothing', async () => {
  await prepare('ended');
  let ended = new Map<string, Recorded>();
  let before: string[] = [];
  await whileStopped(async () => {
    const over = async () => (await isTakenForDead()) && (await notEnded()).length === 0;
    await untilThen('the end of its messages', over);
    steps.answer('late');
    ended = await messages();
    before = given(ended);
  });
  const recorded = await endsOfAll();
  expect(given(ended)).toEqual(before);
  for (const [text, end] of ended) expect(recorded.get(text)).toEqual(end);
  expectCompleted(recorded, ['storing', 'unread'], ['accepting', 'early', 'late']);
}, 300_000);
