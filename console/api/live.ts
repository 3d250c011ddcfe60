import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';
import type { EventRecord } from '../../contracts/api/telemetry.js';
import { sessionQuery } from './session.js';

/** What the inbox shows changes with these. */
const TYPES = [
  ...['message.input_required', 'message.resolved', 'message.decision_effect', 'message.canceled', 'message.error'],
  ...['plan.approval_required', 'plan.approved', 'plan.rejected', 'plan.canceled'],
].join();
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
 * @param onEvents called with all events since the last call, and with none when a stream begins, because some may have been missed
 * @returns ends it
 */
export function follow(
  filters: Record<string, string>,
  onEvents: (events: EventRecord[]) => void,
  onState: (state: 'live' | 'away') => void = () => undefined,
): () => void {
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let events: EventRecord[] = [];
  const show = () => {
    timer = undefined;
    onEvents(events.splice(0));
  };
  const soon = () => {
    timer ??= setTimeout(show, SHOW_EVERY_MS);
  };
  const close = () => {
    source?.close();
    source = undefined;
    clearTimeout(retry);
  };
  const open = () => {
    close();
    if (document.hidden) return;
    source = new EventSource(`/telemetry/stream_events?${new URLSearchParams(filters)}`);
    source.onopen = () => {
      onState('live');
      soon();
    };
    source.onerror = () => {
      onState('away');
      if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
    };
    source.onmessage = ({ data }) => {
      events.push(JSON.parse(data));
      soon();
    };
  };
  open();
  document.addEventListener('visibilitychange', open);
  return () => {
    document.removeEventListener('visibilitychange', open);
    clearTimeout(timer);
    events = [];
    close();
  };
}

/** Lists of at most so many pages are read again as a whole when something happens. */
const PAGES_MAX = 5;
const pagesOf = (data: unknown) => (data as { pages?: unknown[] } | undefined)?.pages?.length ?? 0;

/** Keeps requests to people current while somebody is signed in. */
export function useLiveRequests(enabled: boolean): void {
  const client = useQueryClient();
  useEffect(() => {
    if (!enabled) return;
    return follow(
      { type: TYPES },
      () => {
        const predicate = ({ state }: { state: { data?: unknown } }) => pagesOf(state.data) <= PAGES_MAX;
        void client.invalidateQueries({ queryKey: ['requests'], predicate });
        void client.invalidateQueries({ queryKey: ['request'] });
      },
      (state) => {
        become(state === 'live' ? { state } : { state, since: Date.now() });
        if (state === 'away') void client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      },
    );
  }, [client, enabled]);
}
