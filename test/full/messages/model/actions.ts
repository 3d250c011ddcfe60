import fc from 'fast-check';
import { type Action, type Actions, numbered } from '../../../setup/model.js';
import { ConnectedAgent, type FleetAgent, HostedAgent, TYPES } from './agents.js';
import { cancel, decide, homeOf, pick, request, type SendArgs, send, stopSession } from './calls.js';
import type { World } from './world.js';

/** Arguments that are shown as they are. */
const PLAIN = { noNullPrototype: true } as const;
const TARGETS = 8;
const ANSWERS = ['result', 'failure', 'question'] as const;

/** An action on one of the things that there are now, if there are any. An even variant comes to the first node, an odd one to the second. */
const on = <Thing>(
  things: (world: World) => readonly Thing[],
  work: (world: World, thing: Thing, variant: number) => Promise<unknown>,
) =>
  numbered<World>(async (world, target, variant) => {
    const thing = pick(things(world), target);
    if (thing !== undefined) await work(world, thing, variant);
  }, TARGETS);

interface JoinArgs {
  type: string;
  isHosted: boolean;
  maxSessions: number;
}

/** A new agent of the script's fleet. */
async function join(world: World, { type, isHosted, maxSessions }: JoinArgs): Promise<void> {
  const instanceId = `${type}-${world.agents.length + 1}`;
  const home = homeOf(world, world.agents.length);
  const Kind = isHosted ? HostedAgent : ConnectedAgent;
  const agent = new Kind({ home, instanceId, type, maxSessions, onDelivery: world.deliver });
  world.agents.push(agent);
  await world.persist(() => agent.start());
}

export async function comeBack(world: World, agent: FleetAgent): Promise<void> {
  if (agent.isHere) return;
  world.loseWorkOf(agent);
  await world.persist(() => agent.start());
}

async function leave(world: World, agent: FleetAgent): Promise<void> {
  const leaving = agent.leave();
  world.loseWorkOf(agent);
  await leaving;
  world.loseWorkOf(agent);
}

async function drop(world: World, agent: ConnectedAgent): Promise<void> {
  if (world.nodes.kills.length > 0) world.loseWorkOf(agent, true); // it may come back to another node, or to the same
  agent.drop();
}

async function drain(world: World, agent: FleetAgent): Promise<void> {
  const reported = world.persist(() => agent.report('draining'));
  world.noteAlone(agent);
  await reported;
}

/** Those that wait for an answer of a person. */
export const asking = (world: World) =>
  world.running.filter(({ id, arrivals }) => id && arrivals.at(-1)?.answer?.how === 'question');
const here = (world: World) => world.agents.filter(({ isHere }) => isHere);
const connected = (world: World) => here(world).filter((agent) => agent instanceof ConnectedAgent);
const sent = (world: World) => world.messages.filter(({ id }) => id !== undefined);
const sessions = (world: World) => world.sessions.filter(({ id }) => id !== undefined);

const JOIN: Action<World, JoinArgs> = {
  args: fc.record(
    { type: fc.constantFrom(...TYPES), isHosted: fc.boolean(), maxSessions: fc.constantFrom(0, 1, 1, 2, 3) },
    PLAIN,
  ),
  run: join,
};
const SEND: Action<World, SendArgs> = {
  args: fc.record(
    {
      ...{ at: fc.nat(TARGETS - 1), blocking: fc.boolean(), by: fc.nat(1) },
      to: fc.constantFrom('type', 'type', 'instance', 'idempotent', 'plain', 'session', 'ordered', 'ordered', 'nobody'),
      wish: fc.constantFrom('answer', 'answer', 'fail', 'ask', 'hang', 'hang'),
    },
    PLAIN,
  ),
  run: send,
};
/** What happens to nodes. */
export const FAULTS = {
  kill: { args: fc.nat(1), run: (world, node) => world.nodes.kill(node) } satisfies Action<World, number>,
  outage: {
    args: fc.constantFrom('database', 'redis'),
    run: (world, way) => world.nodes.cut(way),
  } satisfies Action<World, 'database' | 'redis'>,
};

/** What callers, agents, people and nodes do. */
export const actions = {
  ...{ join: JOIN, send: SEND, ...FAULTS },
  repeat: on(
    ({ messages }) => messages,
    (world, message, by) => request(world, message, false, by),
  ),
  answer: on(
    ({ held }) => held,
    async (world, { arrival }, how) => world.answer(arrival, pick(ANSWERS, how) ?? 'result'),
  ),
  decide: on(asking, (world, message, by) => decide(world, message, by < TARGETS / 2 ? 'declined' : 'confirmed', by)),
  cancel: on(sent, cancel),
  interrupt: on(sessions, (world, session, by) => stopSession(world, session, 'interrupt', by)),
  close: on(sessions, (world, session, by) => stopSession(world, session, 'close', by)),
  drop: on(connected, drop),
  leave: on(here, leave),
  comeBack: on(({ agents }) => agents, comeBack),
  drain: on(here, drain),
  undrain: on(here, (world, agent) => world.persist(() => agent.report('available'))),
} satisfies Actions<World>;
