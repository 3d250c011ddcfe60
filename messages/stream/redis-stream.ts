import type { Result } from 'ioredis';
import { BUFFERED_BYTES_MAX, BUFFERED_EVENTS_MAX, type BusEvent, type BusItem } from './bus.js';

/**
 * Appends an event, bounds the stream and announces id and event, in one step. Cursors are the sequence parts of the entry ids, which the stream counts itself.
 * The first is the server's clock, so that a stream that expired continues above the cursors that readers hold. Where output did not reach Redis one cursor is
 * skipped, which readers take for a gap. `0-*` needs Redis 7 or Valkey.
 */
const APPEND = `
local id = '0-*'
if redis.call('EXISTS', KEYS[1]) == 0 then
  local now = redis.call('TIME')
  id = '0-' .. now[1] .. string.format('%03d', math.floor(now[2] / 1000))
elseif ARGV[4] == '1' then
  local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1][1]
  id = '0-' .. string.format('%.0f', tonumber(string.sub(last, 3)) + 2)
end
local added = redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], id, 'event', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[1], added .. ' ' .. ARGV[1])`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** `APPEND`. `afterGap`: output before the event is missing. */
    appendEvent(
      channel: string,
      event: string,
      eventsMax: number,
      retentionMs: number,
      afterGap: 0 | 1,
    ): Result<null, Context>;
  }
}

/** The scripts of a connection that appends. */
export const APPEND_SCRIPTS = { appendEvent: { lua: APPEND, numberOfKeys: 1 } };

/** The length of a stream whose newest event has this size: fewer events if they are large. In all it may exceed the byte limit a few times over. */
export function eventsMaxFor(bytes: number): number {
  return Math.max(1, Math.min(BUFFERED_EVENTS_MAX, Math.floor(BUFFERED_BYTES_MAX / bytes)));
}

/** The position of a subscriber in a stream. */
export interface ReadPosition {
  /** Of the last event that it has received; 0 for none. */
  cursor: number;
  /** Whether the stream may not contain the cursor any more: after a resume, and after Redis was away. */
  unverified: boolean;
}

/** The first id to read. It is that of the last received event, where the stream may not contain it. */
export function readFrom({ cursor, unverified }: ReadPosition): string {
  if (cursor === 0) return '-';
  return `0-${unverified ? cursor : cursor + 1}`;
}

/** Parses an announcement: the id, a space, and the event. */
export function parseAnnouncement(text: string): BusItem {
  const end = text.indexOf(' ');
  return itemOf(text.slice(0, end), text.slice(end + 1));
}

function itemOf(id: string, text: string): BusItem {
  const event = JSON.parse(text) as BusEvent;
  const cursor = Number(id.slice(id.indexOf('-') + 1));
  return { cursor, event, bytes: event.kind === 'changed' ? 0 : Buffer.byteLength(text) };
}

/** The events of a stream's entries, oldest first. */
export function itemsOf(entries: [id: string, fields: string[]][]): BusItem[] {
  return entries.map(([id, fields]) => itemOf(id, fields[1] ?? 'null'));
}

/** The events from the newest `recorded` notice on, where a new subscriber begins. */
function sinceRecorded(items: BusItem[]): BusItem[] {
  const recorded = items.findLastIndex(({ event }) => event.kind === 'changed' && event.recorded === true);
  return recorded < 0 ? items : items.slice(recorded);
}

/** Of several notices that were read at once the last is enough. */
function withLastNotice(items: BusItem[]): BusItem[] {
  const lastNotice = items.findLast(({ event }) => event.kind === 'changed');
  return items.filter((item) => item.event.kind !== 'changed' || item === lastNotice);
}

/** Those events, read from `readFrom` on, that a subscriber gets; null when the stream does not contain its cursor: then all must be read. */
export function eventsAfter(items: BusItem[], { cursor, unverified }: ReadPosition): BusItem[] | null {
  const [first] = items;
  if (cursor === 0) return withLastNotice(sinceRecorded(items));
  if (!first) return unverified ? null : [];
  if (first.cursor === cursor) return withLastNotice(items.slice(1));
  return first.cursor === cursor + 1 ? withLastNotice(items) : eventsFromStart(items);
}

/** Events for a cursor that is no longer retained: a gap marker, then the rest. */
export function eventsFromStart(items: BusItem[]): BusItem[] {
  const rest = sinceRecorded(items);
  const cursor = rest[0] ? rest[0].cursor - 1 : 0;
  return [{ cursor, event: { kind: 'gap' }, bytes: 0 }, ...withLastNotice(rest)];
}
