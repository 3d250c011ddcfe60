import { vi } from 'vitest';
import { PlatformError } from '../../../../runtime/errors.js';
import { type AgentName, allRead, answer } from './agents.js';
import type { Point } from './faults.js';
import type { Harness } from './harness.js';

/** A fault: the points at which it happens, and what it does to whom. It may throw what the interrupted work is to fail with. */
interface FaultPlan {
  points: readonly Point[];
  inject(harness: Harness, target: FaultTarget): Promise<unknown>;
}

interface FaultTarget {
  messageId: string;
  point: Point;
  agent: AgentName;
}

/** Arms a fault. @param agent whom the dispatch goes to, or who answers */
export function armFault(harness: Harness, { points, inject }: FaultPlan, agent: AgentName): void {
  harness.faults.arm(points, (messageId, point) => inject(harness, { messageId, point, agent }));
}

/** On the record as sent, and no byte of it gone out. */
const OPENED: readonly Point[] = ['accepted', 'marked'];

async function answerLost(): Promise<void> {
  throw new PlatformError('SERVICE_UNAVAILABLE', 'The answer of the database was lost.');
}

function cancel({ gateway, fixture }: Harness, { messageId }: FaultTarget): Promise<void> {
  return gateway.cancel(fixture.caller, messageId, 'changed my mind');
}

async function sessionOf({ gateway, fixture }: Harness, messageId: string): Promise<string> {
  return (await gateway.get(fixture.caller, messageId)).session_id;
}

/** The wall clock of this process jumps beyond the lease, as on a machine that was suspended. */
async function sleepThroughLease(harness: Harness, { messageId, point }: FaultTarget): Promise<void> {
  if (point === 'accepted') harness.lapsed.push(messageId);
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + harness.fixture.core.clocks.leaseMs + 1);
  harness.setClockBack = () => clock.mockRestore();
}

/** The workflow looks at the message, and has the time to do something wrong. What it does waits for the owner, so it is not waited for. */
async function takeOver(harness: Harness, { messageId }: FaultTarget): Promise<void> {
  await harness.workflows.look(messageId);
  for (let turn = 0; turn < 5; turn += 1) await sessionOf(harness, messageId);
}

/** The hello is read while the process commits the dispatch; its welcome waits for that. */
async function reconnect(harness: Harness, target: FaultTarget): Promise<void> {
  const agent = harness.agents[target.agent];
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
      await harness.inFlight.ended(delivery.dispatch_id);
    }
    for (const socket of sockets) socket.kill();
    await old.kill();
    // What else it had is found once its leases have run out.
    await harness.workflows.sweep();
  });
}

/** What can go wrong while a dispatch is on the record as sent, or about to be, and no byte of it has gone out. */
export const SEND_FAULTS = {
  /** The process loses all of its memory. */
  dies: { points: OPENED, inject: (harness, { point }) => harness.die(point) },
  /** The database commits, and its answer is lost. The message is found again once its lease has run out. */
  'answer lost': {
    points: OPENED,
    inject: (harness) => {
      harness.afterwards(() => harness.workflows.sweep());
      return answerLost();
    },
  },
  canceled: { points: OPENED, inject: cancel },
  interrupted: {
    points: OPENED,
    inject: async (harness, { messageId }) =>
      harness.sessions.interrupt(harness.fixture.caller, [await sessionOf(harness, messageId)]),
  },
  'session closed': {
    points: OPENED,
    inject: async (harness, { messageId }) =>
      harness.sessions.close(harness.fixture.caller, await sessionOf(harness, messageId)),
  },
  /** The epoch is raised. A hello waits for a dispatch that is being marked, so the workflow path has it one step earlier. */
  'agent reconnects': { points: ['accepted', 'scheduled'], inject: reconnect },
  /** The workflow takes the message over while its owner lives and is well within its lease. */
  'taken over': { points: OPENED, inject: takeOver },
  /** The lease runs out before the owner sends. */
  slow: { points: OPENED, inject: sleepThroughLease },
  'slow and taken over': {
    points: OPENED,
    inject: async (harness, target) => {
      await sleepThroughLease(harness, target);
      await harness.workflows.sweep();
      await takeOver(harness, target);
    },
  },
  /** The others take the process for dead, the agents have gone to another, and then it goes on. */
  outlived: { points: OPENED, inject: outlive },
  'slow and outlived': {
    points: OPENED,
    inject: async (harness, target) => {
      await sleepThroughLease(harness, target);
      await outlive(harness);
    },
  },
} satisfies Record<string, FaultPlan>;

/** What can go wrong between the agent's answer and its place on the record. */
export const ANSWER_FAULTS = {
  dies: { points: ['completing'], inject: (harness) => harness.die() },
  'dies after': { points: ['completed'], inject: (harness) => harness.die() },
  'answer lost': { points: ['completed'], inject: answerLost },
  canceled: { points: ['completing'], inject: cancel },
  'taken over': { points: ['completing'], inject: takeOver },
  /** It is welcomed when the answer under way is on the record. */
  'agent resumes': {
    points: ['completing'],
    inject: async (harness, { agent }) => {
      const welcomed = harness.agents[agent].connect(harness.process, true);
      harness.afterwards(() => welcomed);
    },
  },
} satisfies Record<string, FaultPlan>;
