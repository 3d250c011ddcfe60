import { expect, test } from 'vitest';
import { LIMITS } from '../../contracts/limits.js';
import { readConfig } from '../../runtime/config.js';
import { createLogger } from '../../runtime/logger.js';
import { Collector, tracesUrl } from '../../telemetry/traces/export/collector.js';
import type { ExportedSpan } from '../../telemetry/traces/export/otlp.js';
import { deliver } from '../../telemetry/traces/export/span-delivery.js';
import { isSampled } from '../../telemetry/traces/sampling.js';
import { inOrder, movedInto, spanOf } from '../../telemetry/traces/span.js';
import { type RecordedSpan, SpanWriter } from '../../telemetry/traces/span-recorder.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { waitingMessages } from '../setup/waiting-messages.js';

const log = createLogger({ level: 'silent' });

/** A trace id whose random part begins with this byte. */
const traceId = (byte: string) => `${'0'.repeat(18)}${byte}${'0'.repeat(12)}`;

test.each<[number, string[]]>([
  [1, ['00', '80', 'ff']],
  [0.5, ['80', 'ff']],
  [1 / 3, ['ff']],
  [0, []],
])('of traces a share of %d is sampled, by their ids', (ratio, sampled) => {
  expect(['00', '80', 'ff'].filter((byte) => isSampled(traceId(byte), ratio))).toEqual(sampled);
});

test.each([
  ['within', [10, 20], [12, 15], [12, 15]],
  ['before', [10, 20], [2, 5], [10, 13]],
  ['after', [10, 20], [18, 22], [16, 20]],
  ['longer', [10, 20], [5, 30], [10, 20]],
  ['in one that runs', [10, null], [50, 60], [50, 60]],
] as const)('a span by another clock is moved into the one around it: %s', (_where, enclosing, given, expected) => {
  const at = (ms: number) => new Date(ms);
  const span = spanOf({ span_id: 's', parent_span_id: 'p', name: 'n', start: at(given[0]), end: at(given[1]) });
  const [from, to] = enclosing;
  const moved = movedInto({ start: at(from), end: to === null ? null : at(to) }, span);
  expect([moved.start.getTime(), moved.end?.getTime()]).toEqual(expected);
});

test('spans are put in order, however deep they are', () => {
  const [at, depth] = [new Date(0), 20_000];
  const spans = Array.from({ length: depth }, (_, n) =>
    spanOf({ span_id: `${n}`, parent_span_id: n === 0 ? null : `${n - 1}`, name: 'n', start: at, end: at }),
  );
  expect(inOrder(spans.toReversed()).map(({ span_id }) => Number(span_id))).toEqual([...spans.keys()]);
});

/** A database with so many messages of a tenant, and who writes spans of them. */
async function spanWriter(messages: number, ratio: number) {
  const database = await freshDatabase();
  const tenant_id = await insertTenant(database);
  await waitingMessages(database, tenant_id, messages);
  const counts = { dropped: 0 };
  const writer = new SpanWriter(database.db(), log, ratio, counts);
  const record = (message_id: string, span_id: string, trace = traceId('ff')) => {
    const span = { tenant_id, message_id, span_id, traceparent: `00-${trace}-${'1'.repeat(16)}-01`, attributes: {} };
    const names = { name: span_id, kind: 'internal', parent_span_id: 'p', error_type: null } as const;
    writer.record({ ...span, ...names, startedAtMs: 1_000, endedAtMs: 2_000 } satisfies RecordedSpan);
  };
  return { database, writer, record, counts };
}
const [ONE = '', TWO = ''] = ['1', '2'].map((n) => `msg_00000000-0000-7000-8000-00000000000${n}`);

test('spans are written once, of messages on the record, of sampled traces, and not without a bound', async () => {
  const { database, writer, record, counts } = await spanWriter(2, 0.5);
  record(ONE, 'a');
  record('msg_gone', 'b');
  record(ONE, 'c', traceId('00'));
  await writer.flush();
  record(ONE, 'a');
  const more = 5;
  for (let n = 0; n < LIMITS.spansPerKind + 1 + more; n += 1) record(TWO, `${n}`);
  await writer.flush();
  const rows = await database.query<{ message_id: string; count: number }>(
    'SELECT message_id, count(*)::int AS count FROM trace_spans GROUP BY 1 ORDER BY 1',
  );
  expect(rows).toEqual([
    { message_id: ONE, count: 1 },
    { message_id: TWO, count: LIMITS.spansPerKind + 1 },
  ]);
  expect(counts.dropped).toBe(more);
});

test('a span that the database refuses keeps no other from being written', async () => {
  const { database, writer, record, counts } = await spanWriter(1, 1);
  for (const name of ['one', 'bad \u0000', 'two', 'three']) record(ONE, name);
  await writer.flush();
  expect(await database.column('SELECT name FROM trace_spans ORDER BY 1')).toEqual(['one', 'three', 'two']);
  expect(counts.dropped).toBe(1);
});

const COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318/' };
const { signal } = new AbortController();

/** A collector whose answers are given. */
function collectorThat(
  answer: (spans: number[]) => { status: number; headers?: Record<string, string>; body?: string },
) {
  const config = readConfig(COLLECTOR);
  const url = tracesUrl(config) ?? '';
  expect(url).toBe('http://127.0.0.1:4318/v1/traces');
  return new Collector(url, config, '1.0.0', async (_to, request) => {
    const [resource] = JSON.parse(request.body).resourceSpans;
    const sent: { spanId: string }[] = resource.scopeSpans[0].spans;
    const { status, headers = {}, body = '' } = answer(sent.map(({ spanId }) => Number(spanId)));
    return { status, headers, body: Buffer.from(body) };
  });
}

const AWAY = { exported: 0, refused: 0, later: 'it answered 503' };
const keepLease = async () => undefined;
const partial = (rejectedSpans: unknown) => JSON.stringify({ partialSuccess: { rejectedSpans, errorMessage: 'old' } });
const span = (n: number): ExportedSpan => ({
  ...spanOf({ span_id: `${n}`, parent_span_id: null, name: 'n', start: new Date(0), end: new Date(1) }),
  trace_id: traceId('ff'),
});

test.each([
  [200, {}, '{}', { kind: 'taken', rejected: 0 }],
  [200, {}, 'thanks', { kind: 'taken', rejected: 0 }],
  [200, {}, partial('1'), { kind: 'taken', rejected: 1, reason: 'old' }],
  [200, {}, partial(7), { kind: 'taken', rejected: 2, reason: 'old' }],
  [400, {}, '', { kind: 'refused', reason: 'it answered 400', isFault: false }],
  [500, {}, '', { kind: 'refused', reason: 'it answered 500', isFault: true }],
  [301, {}, '', { kind: 'later', reason: 'it answered 301', afterMs: 0, mayBeTooMuch: false }],
  [503, { 'retry-after': '7' }, '', { kind: 'later', reason: 'it answered 503', afterMs: 7_000, mayBeTooMuch: false }],
  [504, {}, '', { kind: 'later', reason: 'it answered 504', afterMs: 0, mayBeTooMuch: true }],
  [429, {}, '', { kind: 'later', reason: 'it answered 429', afterMs: 0, mayBeTooMuch: false }],
])('a collector that answers %i %o %s', async (status, headers, body, delivery) => {
  const collector = collectorThat(() => ({ status, headers, body }));
  expect(await collector.send([span(1), span(2)], signal)).toEqual(delivery);
});

test.each([
  ['takes all', () => 200, { exported: 8, refused: 0 }],
  ['takes three spans at most', (spans: number[]) => (spans.length > 3 ? 413 : 200), { exported: 8, refused: 0 }],
  ['refuses one span', (spans: number[]) => (spans.includes(5) ? 400 : 200), { exported: 7, refused: 1 }],
  ['fails at one span', (spans: number[]) => (spans.includes(5) ? 500 : 200), { exported: 7, refused: 1 }],
  ['refuses everything', () => 400, { exported: 0, refused: 8 }],
  ['fails at everything', () => 500, { exported: 0, refused: 0, later: 'it answered 500' }],
  ['is away for a half', (spans: number[]) => (spans.includes(0) ? 400 : 503), AWAY],
])('a collector that %s', async (_what, statusFor, expected) => {
  const counts = { exported: 0, refused: 0 };
  const collector = collectorThat((spans) => ({ status: statusFor(spans) }));
  const later = await deliver({ collector, log, counts, keepLease }, [...Array(8).keys()].map(span), signal);
  expect({ ...counts, ...(later && { later: later.reason }) }).toEqual(expected);
});

test('headers of the collector are percent-decoded, and bad ones name their variable', () => {
  const name = 'OTEL_EXPORTER_OTLP_HEADERS';
  expect(readConfig({ [name]: 'a=1%2C2, b = c=d' })[name]).toEqual({ a: '1,2', b: 'c=d' });
  expect(() => readConfig({ [name]: 'nothing' })).toThrow(`${name}: must be name=value`);
});
