// @module-tag once
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SessionInitResponse } from '../../../../contracts/api/sessions.js';
import { expectScriptsAtOnce, type Script, Seen, type Step, scriptRunner, scriptsOf } from '../../../setup/model.js';
import { runsOf } from '../../../setup/seed.js';
import { actions, FAULTS } from './actions.js';
import { TYPES } from './agents.js';
import { expectNoDefect, finish } from './finish.js';
import { Nodes } from './nodes.js';
import { World } from './world.js';

/** Of so many scripts one has a kill and an outage. */
const SCRIPTS_A_FAULT = 10;
const AT_ONCE = 8;
const TIMEOUT_MS = 3_600_000;

const nodes = await Nodes.start();

async function begin(): Promise<World> {
  const world = new World(nodes, await nodes.newTenant());
  for (const type of TYPES) {
    const { session_id } = await world.persist(() =>
      world.client.ok('/sessions/init', { ordered: true }, SessionInitResponse),
    );
    world.sessions.push({ id: session_id, type, isOrdered: true, isClosed: false });
  }
  return world;
}
const seen = new Seen();
const end = async (world: World) => {
  await finish(world);
  for (const message of world.messages) {
    const { end: ended, arrivals, decided, session, isCanceled } = message;
    seen.note(ended?.how ?? 'refused');
    seen.note('several dispatches', arrivals.length > 1);
    seen.note('decided', decided > 0);
    seen.note('in an ordered session', session.isOrdered);
    seen.note('canceled while an agent had it', isCanceled && arrivals.length > 0);
  }
};
const run = scriptRunner<World>({ actions, begin, check: expectNoDefect, end });

const WEIGHTS = { send: 12, answer: 4, decide: 3, join: 0, kill: 0, outage: 0 };
const joins = fc.array(
  actions.join.args.map((args): Step => ['join', args]),
  {
    minLength: 1,
    maxLength: 4,
  },
);
/** Agents join, then everything happens. */
const scripts = fc
  .tuple(joins, scriptsOf(actions, { weights: WEIGHTS, moments: [5, 12], atOnce: 4 }))
  .map(([first, moments]): Script => [first, ...moments]);
const fault = (name: 'kill' | 'outage') =>
  fc.record({ at: fc.nat(), step: (FAULTS[name].args as fc.Arbitrary<unknown>).map((args): Step => [name, args]) });
/** The same with a kill and an outage among the others. */
const scriptsWithFaults = fc
  .tuple(scripts, fault('kill'), fault('outage'))
  .map(([[first = [], ...moments], ...faults]) => {
    const placed = faults.map(({ at, step }) => ({ at: at % moments.length, step }));
    const withFaults = moments.map((moment, index) => [
      ...moment,
      ...placed.filter(({ at }) => at === index).map(({ step }) => step),
    ]);
    return [first, ...withFaults];
  });

test(
  'whatever callers, agents and people do, a message ends once and as it may',
  async () => {
    await expectScriptsAtOnce(scripts, run, { runs: runsOf(5, 45), atOnce: AT_ONCE });
    seen.expectAll('completed', 'failed HANDLER_ERROR', 'canceled', 'decided', 'in an ordered session');
  },
  TIMEOUT_MS,
);

test(
  'the same while nodes are killed, and while the database or Redis is away',
  async () => {
    const runs = Math.ceil(runsOf(1, 50) / SCRIPTS_A_FAULT);
    await expectScriptsAtOnce(scriptsWithFaults, run, { runs, atOnce: AT_ONCE });
    expect(nodes.kills.length).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);
