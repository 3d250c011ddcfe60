import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';
import type { EventType } from '../../contracts/events.js';
import { sessionQuery } from './session.js';

/** What the inbox shows changes with these. */
const REQUEST_TYPES: readonly EventType[] = [
  ...(['message.input_required', 'message.resolved', 'message.decision_effect'] as const),
  ...(['message.canceled', 'message.error'] as const),
  ...(['plan.approval_required', 'plan.approved', 'plan.rejected', 'plan.canceled'] as const),
];
/** What the page of a message shows changes with these. */
export const MESSAGE_TYPES: readonly EventType[] = [
  ...(['message.received', 'message.completed', 'message.error', 'message.canceled'] as const),
  ...(['message.input_required', 'message.resolved', 'message.decision_effect'] as const),
  ...(['dispatch.sent', 'dispatch.success', 'dispatch.failed'] as const),
  ...(['policy.denied', 'policy.audited', 'policy.approval_required'] as const),
  ...(['guard.allowed', 'guard.denied', 'guard.approval_required'] as const),
];
/** What the fleet shows changes with these. How much is in flight changes all the time, and is read again by the clock. */
export const FLEET_TYPES: readonly EventType[] = [
  ...(['agent.registered', 'agent.deregistered', 'agent.health_changed', 'agent.capacity_changed'] as const),
  ...(['dispatch.failed', 'message.error'] as const),
];
/** What plans show changes with these. */
export const PLAN_TYPES: readonly EventType[] = [
  ...(['plan.created', 'plan.approval_required', 'plan.approved', 'plan.rejected'] as const),
  ...(['plan.completed', 'plan.failed', 'plan.canceled', 'dispatch.sent', 'message.completed'] as const),
  ...(['message.error', 'message.canceled', 'message.input_required', 'message.resolved'] as const),
];
/** What sessions show changes with these. */
export const SESSION_TYPES: readonly EventType[] = ['session.created', 'session.closed', ...MESSAGE_TYPES];
/** What has come is shown at most so often. */
const SHOW_EVERY_MS = 500;
const RETRY_MS = 3_000;

/** `away` since when: what is shown is as old as that. */
export type Connection = { state: 'connecting' | 'live' } | { state: 'away'; since: number };

let connection: Connection = { state: 'connecting' };
const listeners = new Set<() => void>();
function become(next: Connection): void {
  if (next.state === 'away' && connection.state === 'away') return;
  connection = next;
  for (const listener of listeners) listener();
}

/** Whether what is shown follows the platform. */
export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => connection,
  );
}

/**
 * Follows events as they happen, and reports whether that works. A stream that broke is opened again; one whose tab is hidden is closed,
 * because a browser opens six connections to a host.
 * @param onChange called soon after events, and when a stream begins, because some may have been missed
 * @returns ends it
 */
export function follow(
  { types, ...filters }: { types: readonly EventType[]; message_id?: string; session_id?: string },
  onChange: () => void,
  onState: (state: 'live' | 'away') => void = () => undefined,
): () => void {
  const query = new URLSearchParams({ ...filters, type: types.join() });
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      onChange();
    }, SHOW_EVERY_MS);
  };
  const close = () => {
    source?.close();
    source = undefined;
    clearTimeout(retry);
  };
  const open = () => {
    close();
    if (document.hidden) return;
    source = new EventSource(`/telemetry/stream_events?${query}`);
    source.onopen = () => {
      onState('live');
      soon();
    };
    source.onerror = () => {
      onState('away');
      if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
    };
    for (const type of types) source.addEventListener(type, soon);
  };
  open();
  document.addEventListener('visibilitychange', open);
  return () => {
    document.removeEventListener('visibilitychange', open);
    clearTimeout(timer);
    close();
  };
}

/** Lists of at most so many pages are read again as a whole when something happens. */
const PAGES_MAX = 5;
/** Whether a list of the query cache is short enough to be read again when something happens. */
export const isShort = ({ state }: { state: { data?: unknown } }): boolean =>
  ((state.data as { pages?: unknown[] } | undefined)?.pages?.length ?? 0) <= PAGES_MAX;

/** Keeps requests to people current while somebody is signed in. */
export function useLiveRequests(enabled: boolean): void {
  const client = useQueryClient();
  useEffect(() => {
    if (!enabled) return;
    return follow(
      { types: REQUEST_TYPES },
      () => {
        void client.invalidateQueries({ queryKey: ['requests'], predicate: isShort });
        void client.invalidateQueries({ queryKey: ['request'] });
      },
      (state) => {
        become(state === 'live' ? { state } : { state, since: Date.now() });
        if (state === 'away') void client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      },
    );
  }, [client, enabled]);
}
