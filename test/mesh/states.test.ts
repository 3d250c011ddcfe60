import { describe, expect, it } from 'vitest';
import {
  CONNECTION_EVENTS,
  CONNECTION_STATES,
  type ConnectionEvent,
  type ConnectionState,
  next,
} from '../../mesh/states.js';

/** The table, row by row: state, event, next state, close code, whether what is in flight fails. */
const ROWS: [ConnectionState, ConnectionEvent, ConnectionState, number?, true?][] = [
  ['UPGRADED', 'hello', 'AWAIT_WELCOME'],
  ['UPGRADED', 'hello_timeout', 'CLOSED', 4408],
  ['UPGRADED', 'close_request', 'CLOSED', 1000],
  ['UPGRADED', 'socket_lost', 'CLOSED'],
  ['AWAIT_WELCOME', 'welcomed', 'READY'],
  ['AWAIT_WELCOME', 'resumed', 'READY'],
  ['AWAIT_WELCOME', 'close_request', 'CLOSED', 1000],
  ['AWAIT_WELCOME', 'replaced', 'CLOSED', 4409],
  ['AWAIT_WELCOME', 'socket_lost', 'CLOSED'],
  ['READY', 'close_request', 'DRAINING'],
  ['READY', 'pings_missed', 'SUSPENDED', 1001],
  ['READY', 'socket_lost', 'SUSPENDED'],
  ['READY', 'replaced', 'CLOSED', 4409, true],
  ['DRAINING', 'drained', 'CLOSED', 1000],
  ['DRAINING', 'grace_over', 'CLOSED', 1000, true],
  ['DRAINING', 'pings_missed', 'SUSPENDED', 1001],
  ['DRAINING', 'socket_lost', 'SUSPENDED'],
  ['DRAINING', 'replaced', 'CLOSED', 4409, true],
  ['SUSPENDED', 'resumed', 'READY'],
  ['SUSPENDED', 'window_over', 'CLOSED', undefined, true],
  ['SUSPENDED', 'hello_without_match', 'CLOSED', undefined, true],
  ['SUSPENDED', 'replaced', 'CLOSED', undefined, true],
];

describe('the states of a connection', () => {
  it.each(ROWS)('%s on %s is %s', (state, event, after, close, failInFlight) => {
    expect(next(state, event)).toEqual({
      state: after,
      ...(close && { close }),
      ...(failInFlight && { failInFlight }),
    });
  });

  it('stay as they are on everything else', () => {
    const listed = new Set(ROWS.map(([state, event]) => `${state} ${event}`));
    for (const state of CONNECTION_STATES) {
      for (const event of CONNECTION_EVENTS) {
        if (!listed.has(`${state} ${event}`)) expect(next(state, event)).toEqual({ state });
      }
    }
  });
});
