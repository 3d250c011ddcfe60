import { createHash, randomFillSync } from 'node:crypto';

/** Prefixes of the platform's identifiers. */
export type IdPrefix =
  | 'ses'
  | 'msg'
  | 'dsp'
  | 'cred'
  | 'ten'
  | 'req'
  | 'mesh'
  | 'con'
  | 'apv'
  | 'call'
  | 'rule'
  | 'chn'
  | 'dlv'
  | 'pol'
  | 'evl'
  | 'job'
  | 'src'
  | 'chk'
  | 'plan'
  | 'ers'
  | 'aud'
  | 'op';

/** Random bytes fetched in one call: 16 bytes from the pool cost 0.1 µs, a call for 16 bytes 5 µs. */
const POOL_BYTES = 4_096;
const pool = Buffer.allocUnsafeSlow(POOL_BYTES);
let poolUsed = POOL_BYTES;

/** Random bytes, used once. For identifiers, not for secrets: the bytes stay in memory until the pool is filled again. */
function takeRandom(bytes: number): Buffer {
  if (poolUsed + bytes > POOL_BYTES) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  poolUsed += bytes;
  return pool.subarray(poolUsed - bytes, poolUsed);
}

/** The milliseconds of the newest id, and how many ids with the same milliseconds came before it. */
let lastMs = 0;
let sequence = 0;
const SEQUENCE_MAX = 0xfff;

/**
 * A UUID version 7 (RFC 9562, method 1): 48 bits of milliseconds, 12 of a counter, then random bits. Ids of one process sort in the order in
 * which they were made, also when its clock is set back.
 */
export function uuidv7(): string {
  const nowMs = Date.now();
  sequence = nowMs > lastMs ? 0 : sequence + 1;
  if (sequence > SEQUENCE_MAX) sequence = 0;
  if (sequence === 0) lastMs = Math.max(nowMs, lastMs + 1);
  const bytes = takeRandom(16);
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | sequence, 6);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The first digits of a UUID of this moment. */
function uuidHead(atMs: number): string {
  const hex = Math.max(0, Math.floor(atMs)).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/** The least identifier of a kind that is made from this moment on: a bound for reading by time. @param atMs milliseconds since 1970 */
export function idBound(prefix: IdPrefix, atMs: number): string {
  return `${prefix}_${uuidHead(atMs)}`;
}

/** The least UUID of version 7 that is made from this moment on. @param atMs milliseconds since 1970 */
export function uuidBound(atMs: number): string {
  return `${uuidHead(atMs)}-0000-0000-000000000000`;
}

/** When an id was made, in milliseconds since 1970; null for one that does not begin as a UUID. @param uuid or bound, without a prefix */
export function madeAtMs(uuid: string): number | null {
  const head = /^([0-9a-f]{8})-([0-9a-f]{4})/.exec(uuid);
  return head && Number.parseInt(`${head[1]}${head[2]}`, 16);
}

/** The beginning of the month (UTC) of a moment, or of so many months later: where a partition begins. In milliseconds since 1970. */
export function monthStartMs(atMs: number, later = 0): number {
  const at = new Date(atMs);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + later, 1);
}

/** Identifiers of one kind: from `least` on, and before `bound`. Null: without this limit. */
export interface IdRange {
  least: string | null;
  bound: string | null;
}

/** The identifiers that are in both ranges. */
export function inBoth(one: IdRange, other: IdRange): IdRange {
  const given = (...ids: (string | null)[]) => ids.filter((id) => id !== null).sort();
  return {
    least: given(one.least, other.least).at(-1) ?? null,
    bound: given(one.bound, other.bound)[0] ?? null,
  };
}

/** The newest months of a range have a week at least. */
const WEEK_MS = 604_800_000;

/** The least identifier of the newest months of a range; null where the whole range is in them, or its end is not known. */
export function newestMonths({ least, bound }: IdRange, prefix: IdPrefix | null): string | null {
  const endMs = bound === null ? null : madeAtMs(uuidOf(bound));
  if (endMs === null) return null;
  const beginMs = monthStartMs(endMs - WEEK_MS);
  const newest = prefix === null ? uuidBound(beginMs) : idBound(prefix, beginMs);
  return least === null || newest > least ? newest : null;
}

/** How far the clocks that ids and rows take their times from may differ, in milliseconds. */
const CLOCK_SLACK_MS = 3_600_000;

/**
 * The range of the identifiers that may have been made in these times, so that a list by time finds its rows by their ids.
 * @param boundAt the least identifier from a moment on, in milliseconds since 1970
 * @param times ISO 8601
 */
export function idRange(
  boundAt: (atMs: number) => string,
  times: { from?: string | undefined; to?: string | undefined },
): IdRange {
  const at = (time: string | undefined, slackMs: number) =>
    time === undefined ? null : boundAt(Date.parse(time) + slackMs);
  return { least: at(times.from, -CLOCK_SLACK_MS), bound: at(times.to, CLOCK_SLACK_MS) };
}

/** A new identifier: the prefix, an underscore and a UUIDv7. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${uuidv7()}`;
}

/**
 * A new identifier of an event. Its last two digits are 00: further events that the same transaction writes about the same message have their
 * places there (db/functions/events/events.sql).
 */
export function newEventId(): string {
  return `evt_${uuidv7().slice(0, -2)}00`;
}

/** The UUID of the row of `event_groups` that has an event. */
export function groupOf(eventId: string): string {
  return `${uuidOf(eventId).slice(0, -2)}00`;
}

/** The UUID inside a prefixed identifier: `dsp_…` → the id of its dispatch frame. */
export function uuidOf(id: string): string {
  return id.slice(id.indexOf('_') + 1);
}

/** The key of an agent in maps and sets; neither part can contain a line feed. */
export function agentKeyOf({ tenant_id, instance_id }: { tenant_id: string; instance_id: string }): string {
  return `${tenant_id}\n${instance_id}`;
}

/** W3C trace context of a message: the caller's trace, or a new one. */
export interface TraceContext {
  trace_id: string;
  parent_span_id: string | null;
  /** Whether its caller samples it; one that begins here is. */
  sampled: boolean;
}

/** The flag of `traceparent`. */
const SAMPLED = 1;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads a `traceparent` header. An absent or invalid one starts a new trace, as W3C Trace Context requires. Its id is the UUID of what starts
 * it, without dashes, so that the trace is found by the key of its first row: random trace ids would need an index that every message pays for.
 * @param uuid of the message, plan or call that the context is for
 */
export function traceFrom(traceparent: string | undefined, uuid: string): TraceContext {
  const match = TRACEPARENT.exec(traceparent ?? '');
  if (match?.[1] && match[2] && !/^0+$/.test(match[1]) && !/^0+$/.test(match[2])) {
    const sampled = (Number.parseInt(match[3] ?? '', 16) & SAMPLED) !== 0;
    return { trace_id: match[1], parent_span_id: match[2], sampled };
  }
  return { trace_id: uuid.replaceAll('-', ''), parent_span_id: null, sampled: true };
}

/** The trace of a message: that of its caller, or its own. */
export function traceIdOf({ trace_id, message_id }: { trace_id: string | null; message_id: string }): string {
  return trace_id ?? uuidOf(message_id).replaceAll('-', '');
}

/** The span id of what has this UUID, for example a message or a dispatch: its last eight bytes, so that every read gives the same. */
export function spanIdOf(uuid: string): string {
  return uuid.replaceAll('-', '').slice(16);
}

/** The id of a span that has no UUID of its own. @param of what identifies it, for example `plan_step`, a plan and a place */
export function derivedSpanId(...of: readonly (string | number)[]): string {
  return createHash('sha256').update(of.join(' ')).digest('hex').slice(0, 16);
}

/** The id of the span of a plan's step: the parent of the messages of its attempts. */
export function planStepSpanId(planId: string, place: number): string {
  return derivedSpanId('plan_step', planId, place);
}

/** The `traceparent` for the work that a message, dispatch, plan or call causes. @param uuid its UUID */
export function traceparentOf(traceId: string, uuid: string, sampled = true): string {
  return `00-${traceId}-${spanIdOf(uuid)}-${sampled ? '01' : '00'}`;
}
