import type { BusEvent, PlacedEvent } from './bus.js';

/** Entries of a message's Redis stream, oldest first. */
export type RedisEntries = [id: string, fields: string[]][];

/** Where a follower stands. Cursor 0: it has seen nothing. */
export interface StreamPosition {
  cursor: number;
  /** Whether it is to be proven that the stream goes on where the follower stands: after a resume, and after Redis was away. */
  unproven: boolean;
}

/** From where a follower reads: with the event that it stands on, where that has to be proven to be there. */
export function readFrom({ cursor, unproven }: StreamPosition): string {
  if (cursor === 0) return '-';
  return `0-${unproven ? cursor : cursor + 1}`;
}

/** Events of the entries; of several notices in one read the last says it all. */
function placedEvents(entries: RedisEntries): PlacedEvent[] {
  const placed = entries.map(([id, fields]) => placedEvent(id, fields[1] ?? 'null'));
  const lastNotice = placed.findLast(({ event }) => event.kind === 'changed');
  return placed.filter((one) => one.event.kind !== 'changed' || one === lastNotice);
}

function placedEvent(id: string, text: string): PlacedEvent {
  const event = JSON.parse(text) as BusEvent;
  return { cursor: cursorOf(id), event, bytes: event.kind === 'changed' ? 0 : Buffer.byteLength(text) };
}

/** What an announcement says: the id, a space, and the event. */
export function announcedEvent(text: string): PlacedEvent {
  const end = text.indexOf(' ');
  return placedEvent(text.slice(0, end), text.slice(end + 1));
}

function cursorOf(id: string): number {
  return Number(id.slice(id.indexOf('-') + 1));
}

/** One that begins is told what came after the newest notice that what was said is in the row. */
function unrecorded(entries: RedisEntries): RedisEntries {
  const recorded = entries.findLastIndex(([, [, text]]) => text?.includes('"recorded":true') && isRecorded(text));
  return recorded < 0 ? entries : entries.slice(recorded);
}

function isRecorded(text: string): boolean {
  const event = JSON.parse(text) as BusEvent;
  return event.kind === 'changed' && event.recorded === true;
}

/**
 * What a follower is told of the entries that were read from `readFrom`; null when it stands where the stream is not, so that it has to
 * read from the start, with a cursor of 0 and a gap before all.
 */
export function eventsAfter(entries: RedisEntries, place: StreamPosition): PlacedEvent[] | null {
  const [first] = entries;
  if (place.cursor === 0) return placedEvents(unrecorded(entries));
  if (!first) return place.unproven ? null : [];
  const oldest = cursorOf(first[0]);
  if (oldest === place.cursor) return placedEvents(entries.slice(1));
  if (oldest === place.cursor + 1) return placedEvents(entries);
  return eventsFromStart(entries);
}

/** Events for a cursor that is no longer retained: a gap marker, then the rest. */
export function eventsFromStart(entries: RedisEntries): PlacedEvent[] {
  const rest = unrecorded(entries);
  const [first] = rest;
  const cursor = first ? cursorOf(first[0]) - 1 : 0;
  return [{ cursor, event: { kind: 'gap' }, bytes: 0 }, ...placedEvents(rest)];
}
