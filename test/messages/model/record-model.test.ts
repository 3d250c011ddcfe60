import { test } from 'vitest';
import { freshDatabase } from '../../setup/database.js';
import { expectModel, type Script, Seen } from '../../setup/model.js';
import { runsOf } from '../../setup/seed.js';
import { HUMAN_ACTIONS, MESSAGE_ACTIONS, TOOL_ACTIONS } from './actions.js';
import { expectSound, expectSoundEnd } from './checks.js';
import { RecordWorld } from './world.js';

const database = await freshDatabase();
const actions = { ...MESSAGE_ACTIONS, ...HUMAN_ACTIONS, ...TOOL_ACTIONS };
type Name = keyof typeof actions;

/** One thing after the other. */
const oneByOne = (...steps: [Name, target: number, variant: number][]): Script =>
  steps.map(([name, ...numbers]) => [[name, numbers]]);

/** Mixes of what may happen, each with scripts that show once what chance may leave out, and what has to be seen. */
const MIXES: {
  what: string;
  messages: number;
  weights: Partial<Record<Name, number>>;
  runs: [few: number, many: number];
  examples: Script[];
  seen: string[];
}[] = [
  {
    what: 'messages that come, go and fail',
    messages: 0,
    weights: { send: 5, deliver: 5, agentAsks: 3, complete: 3, approve: 3, ask: 0, restart: 0, edit: 0, call: 0 },
    runs: [5, 100],
    examples: [
      oneByOne(
        ['send', 0, 1],
        ['deliver', 0, 1],
        ['agentAsks', 0, 2],
        ['approve', 0, 0],
        ['deliver', 0, 1],
        ['complete', 0, 1],
      ),
      oneByOne(['send', 0, 1], ['deliver', 0, 1], ['held', 0, 2], ['approve', 0, 0]),
      oneByOne(['send', 0, 1], ['deliver', 0, 1], ['fail', 0, 1]),
    ],
    seen: ['completed', 'failed', 'canceled', 'resolved', 'agent', 'output', 'repeated dispatch'],
  },
  {
    what: 'people who decide, edit and come too late, while processes die',
    messages: 3,
    weights: { ask: 4, approve: 4, look: 4, deliver: 4, agentAsks: 2, held: 2, followUp: 2, restart: 2, edit: 2 },
    runs: [4, 80],
    examples: [
      oneByOne(['ask', 0, 11], ['approve', 0, 0], ['ask', 1, 10], ['ask', 2, 8], ['restart', 2, 4], ['approve', 0, 0]),
      oneByOne(['deliver', 0, 1], ['agentAsks', 0, 2], ['followUp', 0, 0], ['ask', 1, 9], ['approve', 0, 2]),
      oneByOne(['ask', 0, 9], ['approve', 0, 3], ['ask', 1, 9], ['approve', 0, 4], ['ask', 2, 9], ['expire', 0, 0]),
      oneByOne(['ask', 0, 9], ['cancel', 0, 0], ['deliver', 1, 1], ['held', 0, 2]),
      oneByOne(['ask', 0, 9], ['approve', 0, 2]),
    ],
    seen: [
      ...['resolved', 'expired', 'withdrawn', 'below a quorum', 'killed'],
      ...['credential', 'callback', 'page', 'slack', 'follow-up'],
      ...['admission', 'plan', 'dispatch', 'agent', 'output'],
    ],
  },
  {
    what: 'tool calls that wait for people',
    messages: 2,
    weights: { call: 8, approve: 5, edit: 4, use: 5, deliver: 5, lose: 3, reject: 2, withdraw: 1, restart: 0 },
    runs: [4, 80],
    examples: [
      oneByOne(['deliver', 0, 1], ['call', 0, 0], ['approve', 0, 0], ['use', 0, 0]),
      oneByOne(['deliver', 0, 1], ['call', 0, 0], ['edit', 0, 0], ['use', 0, 0]),
    ],
    seen: ['tool', 'edited', 'passed', 'passed with edited arguments'],
  },
];

test.each(MIXES)(
  'whatever happens in whatever order, each message and each request has one end and nothing is held: $what',
  async ({ messages, weights, runs: [few, many], examples, seen: expected }) => {
    const seen = new Seen();
    await expectModel({
      ...{ actions, weights, moments: [6, 12], atOnce: 4, runs: runsOf(few, many), examples },
      begin: () => RecordWorld.begin(database, seen, messages),
      attempt: (world, step) => world.attempt(step),
      check: expectSound,
      end: expectSoundEnd,
    });
    seen.expectAll(...expected);
  },
  600_000,
);
