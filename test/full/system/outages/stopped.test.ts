import { WorkflowNotFoundError } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Task } from '../../../../contracts/a2a/a2a.js';
import { messageWorkflowId } from '../../../../workflows/definitions.js';
import { leftovers } from '../../../setup/histories/record-checker.js';
import { type MessageStep, MessageSteps } from '../../../setup/message-steps.js';
import { JournalingAgent } from '../../../setup/platform/fleet.js';
import { PATHS } from '../../../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../../../setup/platform/platform.js';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';
import { until } from '../../../setup/until.js';

const AGENT_TYPE = 'worker';
const STEPS: MessageStep[] = ['accepting', 'early', 'late', 'storing', 'unread'];
const TERMINAL = ['completed', 'failed', 'canceled'];
/** A little more than the lease of a process on its messages, and less than what a mesh node is taken for dead after. */
const LEASE_MS = 10_500;
const TAKEOVER_MS = 90_000;
const SETTLE_MS = 90_000;

let shared: SharedPlatform;
/** The one that is stopped; the agent is connected to it. */
let first: TestPlatform;
/** The one that goes on. */
let second: TestPlatform;
let steps: MessageSteps;
const agents: JournalingAgent[] = [];

async function join(platform: TestPlatform, instanceId: string): Promise<void> {
  const options = { instanceId, agentType: AGENT_TYPE, maxConcurrentSessions: 0, keepsWork: true };
  agents.push(await new JournalingAgent(platform, options, (dispatch) => steps.behaviour(dispatch)).start());
}

async function count(from: string): Promise<number> {
  const [row] = await shared.database.query<{ count: number }>(`SELECT count(*)::integer AS count FROM ${from}`);
  return row?.count ?? 0;
}

interface Recorded {
  message_id: string;
  text: string;
  state: string;
  error_code: string | null;
  answer: string | null;
}

/** The messages of these steps, by text. */
async function messages(): Promise<Map<string, Recorded>> {
  const rows = await shared.database.query<Recorded & Record<string, unknown>>(
    `SELECT message_id, parts -> 0 ->> 'text' AS text, state, error_code, artifacts #>> '{0,parts,0,text}' AS answer FROM messages
      WHERE parts -> 0 ->> 'text' = ANY ($1)`,
    [steps.texts(...STEPS)],
  );
  return new Map(rows.map((row) => [row.text, row]));
}

async function notEnded(): Promise<Recorded[]> {
  return [...(await messages()).values()].filter(({ state }) => !TERMINAL.includes(state));
}

async function hasWorkflow(messageId: string): Promise<boolean> {
  const { tenant_id } = first.devJson();
  const workflow = shared.temporal.workflow.getHandle(messageWorkflowId({ tenant_id, message_id: messageId }));
  return workflow.describe().then(
    () => true,
    (error: unknown) => (error instanceof WorkflowNotFoundError ? false : Promise.reject(error)),
  );
}

/** Whether somebody else looks after every message that the record shows as not ended. */
async function isSupervised(): Promise<boolean> {
  return (await Promise.all((await notEnded()).map(({ message_id }) => hasWorkflow(message_id)))).every(Boolean);
}

/**
 * Whether the second process has removed the node of the first. A result that waited for a lock is on the record by then; an accept that did may
 * be, or is tried again by the first process.
 */
async function isTakenForDead(): Promise<boolean> {
  const recorded = await messages();
  return (
    (await count('mesh_nodes')) === 1 && steps.texts('early', 'late', 'storing').every((text) => recorded.has(text))
  );
}

function givenToAgents(texts: string[]): string[] {
  return agents.flatMap(({ journal }) => journal.map(({ text }) => text)).filter((text) => texts.includes(text));
}

/** Stops the first process; locks are let go, requests come and the agent answers; continues it after `meanwhile`. */
async function whileStopped(meanwhile: () => Promise<void>): Promise<void> {
  first.pause();
  try {
    await steps.releaseLocks();
    steps.sendUnread(AGENT_TYPE);
    steps.answer('early');
    await meanwhile();
  } finally {
    first.resume();
  }
}

async function expectAllEnded(): Promise<Map<string, Recorded>> {
  const all = steps.texts(...STEPS);
  const allEnded = async () => {
    const recorded = await messages();
    const open = all.filter((text) => !TERMINAL.includes(recorded.get(text)?.state ?? ''));
    return open.length === 0 || Promise.reject(new Error(`not ended: ${open.join('; ')}`));
  };
  await until(allEnded, { timeoutMs: SETTLE_MS, what: 'the end of every message' });
  return messages();
}

/** Each caller got its task, in a state that the record has not taken back. */
async function expectCallersAnswered(recorded: Map<string, Recorded>): Promise<void> {
  for (const text of steps.texts(...STEPS)) {
    const answer = await steps.answerTo(text);
    expect([text, answer.status, answer.error]).toEqual([text, 200, undefined]);
    const task = Task.parse(answer.result);
    const { message_id, state } = recorded.get(text) as Recorded;
    expect([text, task.id]).toEqual([text, message_id]);
    if (TERMINAL.includes(task.status.state)) expect([text, task.status.state]).toEqual([text, state]);
  }
}

/** No message reached an agent twice, and the record does not contradict itself. */
async function expectOnce(): Promise<void> {
  const journal = agents.flatMap((agent) => agent.journal);
  const twice = journal.filter(({ message_id }, index) =>
    journal.slice(0, index).some((earlier) => earlier.message_id === message_id),
  );
  expect(twice).toEqual([]);
  await steps.closeSessions(second.client);
  await until(async () => (await leftovers(shared.database)).length === 0).catch(() => undefined);
  expect(await leftovers(shared.database)).toEqual([]);
}

const outcome = ({ state, error_code, answer }: Recorded) => error_code ?? `${state}: ${answer}`;

function expectCompleted(recorded: Map<string, Recorded>, texts: readonly string[]): void {
  const outcomes = texts.map((text) => outcome(recorded.get(text) as Recorded));
  expect(outcomes).toEqual(texts.map((text) => `completed: done: ${text}`));
}

/** Whether the agent has done it or not is not known to whoever took it over while its process was gone. */
function expectCompletedOrLost(recorded: Map<string, Recorded>, texts: readonly string[]): void {
  for (const text of texts) {
    expect([`completed: done: ${text}`, 'AGENT_DISCONNECTED']).toContain(outcome(recorded.get(text) as Recorded));
  }
}

/** Stopped with messages at every step from accepting to storing the result (`STEPS`), then continued. */
describe.each(PATHS)('$way, a process that stands still', ({ env }) => {
  beforeAll(async () => {
    // With so many connections several calls of one tenant may wait for locks at once.
    shared = await startPlatform({ ...env, QUEUE_WAIT_MS: '120000', DATABASE_POOL_MAX: '40' });
    first = shared.platform;
    second = await shared.startPeer();
    await join(first, 'first-agent');
  });
  afterAll(async () => {
    await Promise.all(agents.splice(0).map((agent) => agent.stop()));
    await shared?.dispose();
  });

  async function prepare(round: string): Promise<void> {
    steps = new MessageSteps(round, first.client, shared.database);
    await until(async () => (await count('mesh_nodes')) === 2, { what: 'both nodes' });
    await steps.prepare('first-agent');
  }

  test('for the length of its lease, too short to be taken for dead, completes every message', async () => {
    await prepare('lease');
    const began = performance.now();
    await whileStopped(() => until(() => performance.now() - began > LEASE_MS, { timeoutMs: TAKEOVER_MS }).then());
    expect(await count('mesh_nodes')).toBe(2);
    steps.answer('late');
    const recorded = await expectAllEnded();
    expectCompleted(recorded, steps.texts(...STEPS));
    await expectCallersAnswered(recorded);
    await expectOnce();
  }, 240_000);

  test('until another has taken its messages over, sends nothing twice, and one result is accepted', async () => {
    await prepare('takeover');
    await whileStopped(async () => {
      await join(second, 'second-agent');
      const takenOver = async () => (await isTakenForDead()) && (await isSupervised());
      await until(takenOver, { timeoutMs: TAKEOVER_MS, what: 'the takeover' });
      steps.answer('late');
    });
    const recorded = await expectAllEnded();
    expectCompleted(recorded, steps.texts('accepting', 'storing', 'unread'));
    expectCompletedOrLost(recorded, steps.texts('early', 'late'));
    await expectCallersAnswered(recorded);
    await expectOnce();
  }, 300_000);

  test('until another has ended its messages, sends nothing of them and changes nothing', async () => {
    await prepare('ended');
    let ended = new Map<string, Recorded>();
    let given: string[] = [];
    await whileStopped(async () => {
      const over = async () => (await isTakenForDead()) && (await notEnded()).length === 0;
      await until(over, { timeoutMs: TAKEOVER_MS, what: 'the end of its messages' });
      steps.answer('late');
      ended = await messages();
      given = givenToAgents([...ended.keys()]);
    });
    const recorded = await expectAllEnded();
    expect(givenToAgents([...ended.keys()])).toEqual(given);
    for (const [text, before] of ended) expect(recorded.get(text)).toEqual(before);
    expectCompleted(recorded, steps.texts('storing', 'unread'));
    expectCompletedOrLost(recorded, steps.texts('accepting', 'early', 'late'));
    await expectCallersAnswered(recorded);
    await expectOnce();
  }, 300_000);
});
