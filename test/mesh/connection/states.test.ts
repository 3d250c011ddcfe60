import { expect, test } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import {
  afterPings,
  CONNECTION_EVENTS,
  CONNECTION_STATES,
  type ConnectionState,
  next,
} from '../../../mesh/connection/states.js';

/** Every step that changes something: docs/agents.md shows the table that it comes from. */
const STEPS = CONNECTION_STATES.flatMap((from) =>
  CONNECTION_EVENTS.map((event) => ({ from, event, ...next(from, event) })).filter(({ state }) => state !== from),
);
const targets = (states: ConnectionState[]) => [...new Set(states)].sort();

test('a connection is always able to end, and then stays as it is', () => {
  const ending = STEPS.filter(({ state }) => state === 'CLOSED').map(({ from }) => from);
  expect(targets(ending)).toEqual(targets(CONNECTION_STATES.filter((state) => state !== 'CLOSED')));
  expect(STEPS.filter(({ from }) => from === 'CLOSED')).toEqual([]);
});

test('what is in flight fails only with the end of a connection that was READY once', () => {
  const failing = STEPS.filter(({ failInFlight }) => failInFlight);
  expect(targets(failing.map(({ from }) => from))).toEqual(['DRAINING', 'READY', 'SUSPENDED']);
  expect(targets(failing.map(({ state }) => state))).toEqual(['CLOSED']);
});

test('a lost socket suspends a connection that may hold work, and closes any other', () => {
  const lost = STEPS.filter(({ event }) => event === 'socket_lost').map(({ from, state }) => [from, state]);
  expect(Object.fromEntries(lost)).toEqual({
    ...{ UPGRADED: 'CLOSED', AWAIT_WELCOME: 'CLOSED' },
    ...{ READY: 'SUSPENDED', DRAINING: 'SUSPENDED' },
  });
});

test('pings a silent agent three times and takes it for dead 90 s after its last answer', () => {
  const seen: string[] = [];
  let atMs = 0;
  for (let unanswered = 0; unanswered <= LIMITS.missedPingsMax; unanswered += 1) {
    const { inMs, then } = afterPings(unanswered, LIMITS.pingIntervalMs);
    atMs += inMs;
    seen.push(`${then} at ${Math.round(atMs / 1_000)} s`);
  }
  expect(seen).toEqual(['ping at 30 s', 'ping at 60 s', 'ping at 80 s', 'dead at 90 s']);
});
