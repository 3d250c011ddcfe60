import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CONNECTION_EVENTS, CONNECTION_STATES, next, type Transition } from '../../../mesh/connection/states.js';

/** The table that agents' authors are given: state, event, next state, close code, whether what is in flight fails. */
const ROW = /^\| `(\w+)` \| `(\w+)`[^|]* \| `(\w+)` \| (\d*) ?\| (fails)? ?\|$/gm;
const document = readFileSync(new URL('../../../docs/agents.md', import.meta.url), 'utf8');
const rows = [...document.matchAll(ROW)].map(([, state = '', event = '', after, close, fails]) => ({
  name: `${state} ${event}`,
  step: {
    state: after,
    ...(close && { close: Number(close) }),
    ...(fails && { failInFlight: true }),
  } as Transition,
}));

describe('the states of a connection', () => {
  it('are in the document once each', () => {
    expect(rows.length).toBeGreaterThan(20);
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
  });

  it.each(CONNECTION_STATES)('%s is what the document says of it, and stays as it is on everything else', (state) => {
    const documented = Object.fromEntries(rows.map(({ name, step }) => [name, step]));
    for (const event of CONNECTION_EVENTS) {
      const name = `${state} ${event}`;
      expect([name, next(state, event)]).toEqual([name, documented[name] ?? { state }]);
    }
  });

  it('and events in the document are those that there are', () => {
    const names = CONNECTION_STATES.flatMap((state) => CONNECTION_EVENTS.map((event) => `${state} ${event}`));
    expect(names).toEqual(expect.arrayContaining(rows.map(({ name }) => name)));
  });
});
