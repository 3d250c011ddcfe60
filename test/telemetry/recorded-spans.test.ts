import { expect, test } from 'vitest';
import { LIMITS } from '../../contracts/limits.js';
import { readConfig } from '../../runtime/config.js';
import { createLogger } from '../../runtime/logger.js';
import { Collector, tracesUrl } from '../../telemetry/traces/collector.js';
import { isSampled } from '../../telemetry/traces/sampling.js';
import { movedInto, spanOf } from '../../telemetry/traces/span.js';
import { type RecordedSpan, SpanWriter } from '../../telemetry/traces/span-recorder.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { waitingMessages } from '../setup/waiting-messages.js';

const log = createLogger({ level: 'silent' });
const BETWEEN = 1 / 3;

/** A trace id whose random part begins with this byte. */
const traceId = (byte: string) => `${'0'.repeat(18)}${byte}${'0'.repeat(12)}`;

test.each([
  [1, ['00', '80', 'ff']],
  [0.5, ['80', 'ff']],
  [BETWEEN, ['ff']],
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

test('spans are written once, of messages on the record, of sampled traces, and not without a bound', async () => {
  const database = await freshDatabase();
  const tenant_id = await insertTenant(database);
  await waitingMessages(database, tenant_id, 2);
  const [one = '', two = ''] = ['1', '2'].map((n) => `msg_00000000-waiting-${n}`);
  const counts = { dropped: 0 };
  const writer = new SpanWriter(database.db(), log, 0.5, counts);
  const record = (message_id: string, span_id: string, trace = traceId('ff')) => {
    const times = { startedAtMs: 1_000, endedAtMs: 2_000 };
    const names = { name: 'execute_tool t', kind: 'internal', parent_span_id: 'p', error_type: null } as const;
    const span = { tenant_id, message_id, span_id, traceparent: `00-${trace}-${'1'.repeat(16)}-01`, attributes: {} };
    writer.record({ ...span, ...names, ...times } satisfies RecordedSpan);
  };
  record(one, 'a');
  record('msg_gone', 'b');
  record(one, 'c', traceId('00'));
  await writer.flush();
  record(one, 'a');
  const more = 5;
  for (let n = 0; n < LIMITS.recordedSpansPerMessage + more; n += 1) record(two, `${n}`);
  await writer.flush();
  const rows = await database.query<{ message_id: string; count: number }>(
    'SELECT message_id, count(*)::int AS count FROM trace_spans GROUP BY 1 ORDER BY 1',
  );
  expect(rows).toEqual([
    { message_id: one, count: 1 },
    { message_id: two, count: LIMITS.recordedSpansPerMessage },
  ]);
  expect(counts.dropped).toBe(more);
});

test.each([
  [200, {}, { kind: 'taken' }],
  [400, {}, { kind: 'refused', reason: 'it answered 400' }],
  [503, { 'retry-after': '7' }, { kind: 'later', reason: 'it answered 503', afterMs: 7_000 }],
  [429, {}, { kind: 'later', reason: 'it answered 429', afterMs: 0 }],
])('a collector that answers %i', async (status, headers, delivery) => {
  const config = readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318/' });
  const url = tracesUrl(config) ?? '';
  expect(url).toBe('http://127.0.0.1:4318/v1/traces');
  const collector = new Collector(url, config, '1.0.0', async () => ({ status, headers }));
  expect(await collector.send([], new AbortController().signal)).toEqual(delivery);
});

test('headers of the collector are percent-decoded, and bad ones name their variable', () => {
  const name = 'OTEL_EXPORTER_OTLP_HEADERS';
  expect(readConfig({ [name]: 'a=1%2C2, b = c=d' })[name]).toEqual({ a: '1,2', b: 'c=d' });
  expect(() => readConfig({ [name]: 'nothing' })).toThrow(`${name}: must be name=value`);
});
