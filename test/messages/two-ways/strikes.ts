import { vi } from 'vitest';
import { LEASE_MS } from '../../../messages/dispatch/lease.js';
import { PlatformError } from '../../../runtime/errors.js';
import { allRead, answer } from './agents.js';
import type { Point } from './faults.js';
import type { AgentName, AnswerFault, SendFault } from './script.js';
import type { Stage } from './stage.js';

/** A fault: where it strikes, and what it does to whom. It may throw what the interrupted work is to fail with. */
interface Strike {
  points: readonly Point[];
  strike(stage: Stage, struck: Struck): Promise<unknown>;
}

interface Struck {
  messageId: string;
  point: Point;
  /** That the dispatch goes to, or that answers. */
  agent: AgentName;
}

/** On the record as sent, and no byte of it gone out. */
const OPENED: readonly Point[] = ['T1', 'marked'];

async function answerLost(): Promise<void> {
  throw new PlatformError('SERVICE_UNAVAILABLE', 'The answer of the database was lost.');
}

function cancel(stage: Stage, { messageId }: Struck): Promise<void> {
  return stage.gateway.cancel(stage.bench.caller, messageId, 'changed my mind');
}

async function sessionOf(stage: Stage, messageId: string): Promise<string> {
  return (await stage.gateway.get(stage.bench.caller, messageId)).session_id;
}

/** The wall clock of this process jumps beyond the lease, as on a machine that was suspended. */
async function sleepThroughLease(stage: Stage, { messageId, point }: Struck): Promise<void> {
  if (point === 'T1') stage.lapsed.push(messageId);
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + LEASE_MS + 1);
  stage.afterwards(async () => clock.mockRestore());
}

/** The workflow looks at the message, and has the time to do something wrong. What it does waits for the owner, so it is not waited for. */
async function takeOver(stage: Stage, { messageId }: Struck): Promise<void> {
  await stage.workflows.look(messageId);
  for (let turn = 0; turn < 5; turn += 1) await sessionOf(stage, messageId);
}

async function sleepAndLose(stage: Stage, struck: Struck): Promise<void> {
  await sleepThroughLease(stage, struck);
  await stage.workflows.sweep();
  await takeOver(stage, struck);
}

/** The hello is read while the process commits the dispatch; its welcome waits for that. */
async function reconnect(stage: Stage, struck: Struck): Promise<void> {
  const agent = stage.agents[struck.agent];
  const before = agent.socket;
  if (!before) return;
  const welcomed = agent.connect(stage.process);
  stage.afterwards(() => welcomed);
  await Promise.race([before.closed, welcomed]);
}

/** What reaches the agents from a process that others have taken for dead they still answer; then it ends for good. */
async function outlive(stage: Stage): Promise<void> {
  const old = stage.process;
  const sockets = Object.values(stage.agents).flatMap(({ socket }) => (socket ? [socket] : []));
  await old.presumeDead();
  await stage.startProcess();
  await stage.welcomeAgents();
  stage.afterwards(async () => {
    const { deliveries } = stage.inbox;
    for (const delivery of deliveries.filter(({ socket }) => sockets.includes(socket) && socket.isOpen)) {
      answer(delivery, 'completed', 'from the past');
      await allRead(delivery.socket);
      await stage.flights.landed(delivery.dispatch_id);
    }
    for (const socket of sockets) socket.kill();
    await old.kill();
  });
}

export const SEND_STRIKES: Record<SendFault, Strike> = {
  dies: { points: OPENED, strike: (stage) => stage.die() },
  'answer lost': {
    points: OPENED,
    // The message is found again once its lease has run out.
    strike: (stage) => {
      stage.afterwards(() => stage.workflows.sweep());
      return answerLost();
    },
  },
  canceled: { points: OPENED, strike: cancel },
  interrupted: {
    points: OPENED,
    strike: async (stage, { messageId }) =>
      stage.sessions.interrupt(stage.bench.caller, [await sessionOf(stage, messageId)]),
  },
  'session closed': {
    points: OPENED,
    strike: async (stage, { messageId }) => stage.sessions.close(stage.bench.caller, await sessionOf(stage, messageId)),
  },
  // A hello waits for a dispatch that is being marked, so the long way has it one step earlier.
  'agent reconnects': {
    points: ['T1', 'scheduled'],
    strike: reconnect,
  },
  'taken over': { points: OPENED, strike: takeOver },
  slow: { points: OPENED, strike: sleepThroughLease },
  'slow and taken over': { points: OPENED, strike: sleepAndLose },
  outlived: { points: OPENED, strike: outlive },
  'slow and outlived': {
    points: OPENED,
    strike: async (stage, struck) => {
      await sleepThroughLease(stage, struck);
      await outlive(stage);
    },
  },
};

export const ANSWER_STRIKES: Record<AnswerFault, Strike> = {
  dies: { points: ['ending'], strike: (stage) => stage.die() },
  'dies after': { points: ['ended'], strike: (stage) => stage.die() },
  'answer lost': { points: ['ended'], strike: answerLost },
  canceled: { points: ['ending'], strike: cancel },
  'taken over': { points: ['ending'], strike: takeOver },
  // It is welcomed when the answer under way is on the record.
  'agent resumes': {
    points: ['ending'],
    strike: async (stage, { agent }) => {
      const welcomed = stage.agents[agent].connect(stage.process, true);
      stage.afterwards(() => welcomed);
    },
  },
};
