import { expect, it } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { afterPings } from '../../../mesh/connection/states.js';

it('pings a silent agent three times and takes it for dead 90 s after its last answer', () => {
  const seen: [string, number][] = [];
  let atMs = 0;
  for (let unanswered = 0; unanswered <= LIMITS.missedPingsMax; unanswered += 1) {
    const { inMs, then } = afterPings(unanswered, LIMITS.pingIntervalMs);
    atMs += inMs;
    seen.push([then, Math.round(atMs / 1_000)]);
  }
  expect(seen).toEqual([
    ['ping', 30],
    ['ping', 60],
    ['ping', 80],
    ['dead', 90],
  ]);
});
