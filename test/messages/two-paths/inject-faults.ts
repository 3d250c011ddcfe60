import { vi } from 'vitest';
import { LEASE_MS } from '../../../messages/dispatch/lease.js';
import { PlatformError } from '../../../runtime/errors.js';
import { allRead, answer } from './agents.js';
import type { Point } from './faults.js';
import type { Harness } from './harness.js';
import type { AgentName, AnswerFault, SendFault } from './script.js';

/** A fault: where it faults, and what it does to whom. It may throw what the interrupted work is to fail with. */
interface Strike {
  points: readonly Point[];
  strike(harness: Harness, struck: Struck): Promise<unknown>;
}

interface Struck {
  messageId: string;
  point: Point;
  /** That the dispatch goes to, or that answers. */
  agent: AgentName;
}

/** On the record as sent, and no byte of it gone out. */
const OPENED: readonly Point[] = ['accepted', 'marked'];

async function answerLost(): Promise<void> {
  throw new PlatformError('SERVICE_UNAVAILABLE', 'The answer of the database was lost.');
}

function cancel(harness: Harness, { messageId }: Struck): Promise<void> {
  return harness.gateway.cancel(harness.fixture.caller, messageId, 'changed my mind');
}

async function sessionOf(harness: Harness, messageId: string): Promise<string> {
  return (await harness.gateway.get(harness.fixture.caller, messageId)).session_id;
}

/** The wall clock of this process jumps beyond the lease, as on a machine that was suspended. */
async function sleepThroughLease(harness: Harness, { messageId, point }: Struck): Promise<void> {
  if (point === 'accepted') harness.lapsed.push(messageId);
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + LEASE_MS + 1);
  harness.afterwards(async () => clock.mockRestore());
}

/** The workflow looks at the message, and has the time to do something wrong. What it does waits for the owner, so it is not waited for. */
async function takeOver(harness: Harness, { messageId }: Struck): Promise<void> {
  await harness.workflows.look(messageId);
  for (let turn = 0; turn < 5; turn += 1) await sessionOf(harness, messageId);
}

async function sleepAndLose(harness: Harness, struck: Struck): Promise<void> {
  await sleepThroughLease(harness, struck);
  await harness.workflows.sweep();
  await takeOver(harness, struck);
}

/** The hello is read while the process commits the dispatch; its welcome waits for that. */
async function reconnect(harness: Harness, struck: Struck): Promise<void> {
  const agent = harness.agents[struck.agent];
  const before = agent.socket;
  if (!before) return;
  const welcomed = agent.connect(harness.process);
  harness.afterwards(() => welcomed);
  await Promise.race([before.closed, welcomed]);
}

/** What reaches the agents from a process that others have taken for dead they still answer; then it ends for good. */
async function outlive(harness: Harness): Promise<void> {
  const old = harness.process;
  const sockets = Object.values(harness.agents).flatMap(({ socket }) => (socket ? [socket] : []));
  await old.presumeDead();
  await harness.startProcess();
  await harness.welcomeAgents();
  harness.afterwards(async () => {
    const { deliveries } = harness.inbox;
    for (const delivery of deliveries.filter(({ socket }) => sockets.includes(socket) && socket.isOpen)) {
      answer(delivery, 'completed', 'from the past');
      await allRead(delivery.socket);
      await harness.flights.landed(delivery.dispatch_id);
    }
    for (const socket of sockets) socket.kill();
    await old.kill();
  });
}

export const SEND_FAULTS: Record<SendFault, Strike> = {
  dies: { points: OPENED, strike: (harness) => harness.die() },
  'answer lost': {
    points: OPENED,
    // The message is found again once its lease has run out.
    strike: (harness) => {
      harness.afterwards(() => harness.workflows.sweep());
      return answerLost();
    },
  },
  canceled: { points: OPENED, strike: cancel },
  interrupted: {
    points: OPENED,
    strike: async (harness, { messageId }) =>
      harness.sessions.interrupt(harness.fixture.caller, [await sessionOf(harness, messageId)]),
  },
  'session closed': {
    points: OPENED,
    strike: async (harness, { messageId }) =>
      harness.sessions.close(harness.fixture.caller, await sessionOf(harness, messageId)),
  },
  // A hello waits for a dispatch that is being marked, so the workflow path has it one step earlier.
  'agent reconnects': {
    points: ['accepted', 'scheduled'],
    strike: reconnect,
  },
  'taken over': { points: OPENED, strike: takeOver },
  slow: { points: OPENED, strike: sleepThroughLease },
  'slow and taken over': { points: OPENED, strike: sleepAndLose },
  outlived: { points: OPENED, strike: outlive },
  'slow and outlived': {
    points: OPENED,
    strike: async (harness, struck) => {
      await sleepThroughLease(harness, struck);
      await outlive(harness);
    },
  },
};

export const ANSWER_FAULTS: Record<AnswerFault, Strike> = {
  dies: { points: ['ending'], strike: (harness) => harness.die() },
  'dies after': { points: ['ended'], strike: (harness) => harness.die() },
  'answer lost': { points: ['ended'], strike: answerLost },
  canceled: { points: ['ending'], strike: cancel },
  'taken over': { points: ['ending'], strike: takeOver },
  // It is welcomed when the answer under way is on the record.
  'agent resumes': {
    points: ['ending'],
    strike: async (harness, { agent }) => {
      const welcomed = harness.agents[agent].connect(harness.process, true);
      harness.afterwards(() => welcomed);
    },
  },
};
