import { CLOSE_CODES, type FrameErrorCode } from '../../contracts/errors.js';

/** States of a connected agent's connection (specification section 3). SUSPENDED: the socket is gone, its work is kept. */
export const CONNECTION_STATES = ['UPGRADED', 'AWAIT_WELCOME', 'READY', 'DRAINING', 'SUSPENDED', 'CLOSED'] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** What can happen to a connection. */
export const CONNECTION_EVENTS = [
  'hello',
  'hello_timeout',
  'welcomed',
  'close_request',
  'pings_missed',
  'socket_lost',
  'drained',
  'grace_over',
  'resumed',
  'window_over',
  'hello_without_match',
  'replaced',
] as const;
export type ConnectionEvent = (typeof CONNECTION_EVENTS)[number];

/** The next state, and what has to happen on the way there. */
export interface Step {
  state: ConnectionState;
  /** Close the socket with this code. */
  close?: number;
  /** Everything in flight ends with AGENT_DISCONNECTED. */
  failInFlight?: true;
}

const TABLE: Record<ConnectionState, Partial<Record<ConnectionEvent, Step>>> = {
  UPGRADED: {
    hello: { state: 'AWAIT_WELCOME' },
    hello_timeout: { state: 'CLOSED', close: CLOSE_CODES.HELLO_TIMEOUT },
    socket_lost: { state: 'CLOSED' },
    close_request: { state: 'CLOSED', close: CLOSE_CODES.NORMAL },
  },
  AWAIT_WELCOME: {
    welcomed: { state: 'READY' },
    resumed: { state: 'READY' },
    socket_lost: { state: 'CLOSED' },
    replaced: { state: 'CLOSED', close: CLOSE_CODES.REPLACED },
    close_request: { state: 'CLOSED', close: CLOSE_CODES.NORMAL },
  },
  READY: {
    close_request: { state: 'DRAINING' },
    pings_missed: { state: 'SUSPENDED', close: CLOSE_CODES.GOING_AWAY },
    socket_lost: { state: 'SUSPENDED' },
    replaced: { state: 'CLOSED', close: CLOSE_CODES.REPLACED, failInFlight: true },
  },
  DRAINING: {
    drained: { state: 'CLOSED', close: CLOSE_CODES.NORMAL },
    grace_over: { state: 'CLOSED', close: CLOSE_CODES.NORMAL, failInFlight: true },
    pings_missed: { state: 'SUSPENDED', close: CLOSE_CODES.GOING_AWAY },
    socket_lost: { state: 'SUSPENDED' },
    replaced: { state: 'CLOSED', close: CLOSE_CODES.REPLACED, failInFlight: true },
  },
  SUSPENDED: {
    // The work goes on: the socket that brought the token is READY in place of this one.
    resumed: { state: 'READY' },
    window_over: { state: 'CLOSED', failInFlight: true },
    hello_without_match: { state: 'CLOSED', failInFlight: true },
    replaced: { state: 'CLOSED', failInFlight: true },
  },
  CLOSED: {},
};

/** The table of the connection's states. An event that means nothing in `state` changes nothing. */
export function next(state: ConnectionState, event: ConnectionEvent): Step {
  return TABLE[state][event] ?? { state };
}

/** Which closings are explained by an `error` frame. */
export const CLOSE_REASONS: Record<number, [FrameErrorCode, string]> = {
  [CLOSE_CODES.HELLO_TIMEOUT]: ['HELLO_TIMEOUT', 'No hello came in time.'],
  [CLOSE_CODES.REPLACED]: ['REPLACED', 'A newer connection of this instance has taken over.'],
  [CLOSE_CODES.DEREGISTERED]: ['DEREGISTERED', 'The instance was deregistered.'],
};
