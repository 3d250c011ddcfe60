import { CLOSE_CODES, type FrameErrorCode } from '../../contracts/errors.js';
import { LIMITS } from '../../contracts/limits.js';

/** States of an agent's connection. SUSPENDED: the socket is gone, its dispatches wait for a resume. */
export const CONNECTION_STATES = ['UPGRADED', 'AWAIT_WELCOME', 'READY', 'DRAINING', 'SUSPENDED', 'CLOSED'] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

export const CONNECTION_EVENTS = [
  'hello',
  'hello_timeout',
  'welcomed',
  'close_request',
  'pings_missed',
  'socket_lost',
  'left',
  'drained',
  'grace_over',
  'transferred',
  'resumed',
  'window_over',
  'hello_without_match',
  'replaced',
] as const;
export type ConnectionEvent = (typeof CONNECTION_EVENTS)[number];

/** The next state, and what belongs to the transition. */
export interface Transition {
  state: ConnectionState;
  /** Close the socket with this code. */
  close?: number;
  /** Everything in flight ends with AGENT_DISCONNECTED. */
  failInFlight?: true;
}

/** `npm run docs` writes this table into docs/agents.md, with the notes at its events. */
const TRANSITIONS: Record<ConnectionState, Partial<Record<ConnectionEvent, Transition>>> = {
  UPGRADED: {
    hello: { state: 'AWAIT_WELCOME' },
    /** no `hello` within 10 s */
    hello_timeout: { state: 'CLOSED', close: CLOSE_CODES.HELLO_TIMEOUT },
    socket_lost: { state: 'CLOSED' },
    close_request: { state: 'CLOSED', close: CLOSE_CODES.NORMAL },
  },
  AWAIT_WELCOME: {
    /** registered, and `welcome` sent */
    welcomed: { state: 'READY' },
    /** as above; dispatches that are sent again are queued before new work */
    resumed: { state: 'READY' },
    socket_lost: { state: 'CLOSED' },
    replaced: { state: 'CLOSED', close: CLOSE_CODES.REPLACED },
    close_request: { state: 'CLOSED', close: CLOSE_CODES.NORMAL },
  },
  READY: {
    /** from either side */
    close_request: { state: 'DRAINING' },
    /** three in a row, about 90 s */
    pings_missed: { state: 'SUSPENDED', close: CLOSE_CODES.GOING_AWAY },
    socket_lost: { state: 'SUSPENDED' },
    /** by a newer socket */
    replaced: { state: 'CLOSED', close: CLOSE_CODES.REPLACED, failInFlight: true },
  },
  DRAINING: {
    /** nothing in flight any more; 4410 if the instance was deregistered */
    drained: { state: 'CLOSED', close: CLOSE_CODES.NORMAL },
    /** the grace has ended; 4410 if the instance was deregistered */
    grace_over: { state: 'CLOSED', close: CLOSE_CODES.NORMAL, failInFlight: true },
    /** its node stops, and another may continue its work */
    transferred: { state: 'CLOSED', close: CLOSE_CODES.GOING_AWAY },
    pings_missed: { state: 'SUSPENDED', close: CLOSE_CODES.GOING_AWAY },
    socket_lost: { state: 'SUSPENDED' },
    /** the agent has closed its socket with 1000: it gives up what it has not finished */
    left: { state: 'CLOSED', failInFlight: true },
    replaced: { state: 'CLOSED', close: CLOSE_CODES.REPLACED, failInFlight: true },
  },
  SUSPENDED: {
    transferred: { state: 'CLOSED' },
    /** 45 s, or the instance was deregistered */
    window_over: { state: 'CLOSED', failInFlight: true },
    hello_without_match: { state: 'CLOSED', failInFlight: true },
    /** a `hello` on another node */
    replaced: { state: 'CLOSED', failInFlight: true },
  },
  CLOSED: {},
};

/** The state after an event. An event without an entry in the table changes nothing. */
export function next(state: ConnectionState, event: ConnectionEvent): Transition {
  return TRANSITIONS[state][event] ?? { state };
}

/** The `error` frames that explain close codes. */
export const CLOSE_REASONS: Record<number, [FrameErrorCode, string]> = {
  [CLOSE_CODES.HELLO_TIMEOUT]: ['HELLO_TIMEOUT', 'No hello came in time.'],
  [CLOSE_CODES.REPLACED]: ['REPLACED', 'A newer connection of this instance has taken over.'],
  [CLOSE_CODES.DEREGISTERED]: ['DEREGISTERED', 'The instance was deregistered.'],
};

/**
 * Waits before each ping, and after the last one, in ping intervals: three in all. The last ping goes out early, so
 * that there is time to answer it.
 */
const PING_WAITS = [1, 1, 2 / 3, 1 / 3];

/**
 * What follows when this many pings in a row have no answer. Three missed pings, about 90 s, mean that the agent is
 * gone.
 * @returns `ping`: another ping is due in `inMs` milliseconds; `dead`: after `inMs`, the agent counts as gone
 */
export function afterPings(unanswered: number, pingIntervalMs: number): { inMs: number; then: 'ping' | 'dead' } {
  const then = unanswered < LIMITS.missedPingsMax ? 'ping' : 'dead';
  return { inMs: (PING_WAITS[unanswered] ?? 0) * pingIntervalMs, then };
}
