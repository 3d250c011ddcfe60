import { expect, test } from 'vitest';
import { messageContent, outputContent, toolArguments, toolResult } from '../../../policy/guards/content.js';
import type { GuardedContent } from '../../../policy/guards/guarded-content.js';
import { only } from './guards-fixture.js';

const BYTES = 300;
const DEPTH = 6;
const HOPS = 3;
const REPEATS = 2;
const strict = only({
  guard: 'limits',
  config: {
    max_message_bytes: BYTES,
    max_output_bytes: BYTES,
    max_argument_bytes: BYTES,
    max_result_bytes: BYTES,
    max_depth: DEPTH,
    max_hops: HOPS,
    max_repeated_calls: REPEATS,
  },
});
const asDefault = only({ guard: 'limits' });

const message = (text: string, metadata = {}) => messageContent([{ kind: 'text', text }], metadata);
const data = (value: Record<string, unknown>) => messageContent([{ kind: 'data', data: value }], {});
const output = (text: string) => outputContent({ artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text }] }] });
const call = (given: Record<string, unknown>, hops = 1, repeats = 1) =>
  toolArguments(given, { hops, repeats: () => repeats });

/** Content whose JSON has so many bytes: what `make` gives, with a text as long as it takes. */
function sized(bytes: number, make: (text: string) => GuardedContent): GuardedContent {
  return make('a'.repeat(bytes - make('').facts.bytes));
}

/** Objects inside each other, `depth` of them in all. */
const objects = (depth: number): Record<string, unknown> => (depth === 1 ? {} : { a: objects(depth - 1) });
const arrays = (depth: number): unknown => (depth === 0 ? 1 : [arrays(depth - 1)]);

test.each<[what: string, rule: string, content: GuardedContent]>([
  ['a message of a byte too many', 'size', sized(BYTES + 1, message)],
  ['a long message', 'size', message('a'.repeat(100_000))],
  ['letters of two bytes', 'size', message('é'.repeat(BYTES / 2))],
  ['letters of three bytes', 'size', message('漢'.repeat(BYTES / 3))],
  ['emoji of four bytes', 'size', message('😀'.repeat(BYTES / 4))],
  ['quotation marks, which JSON escapes', 'size', message('"'.repeat(BYTES / 2))],
  ['control characters, which JSON spells out', 'size', message('\u0001'.repeat(BYTES / 6))],
  ['invisible characters', 'size', message('\u200b'.repeat(BYTES / 3))],
  ['large metadata', 'size', message('hi', { note: 'a'.repeat(BYTES) })],
  ['a long key', 'size', data({ ['k'.repeat(BYTES)]: 1 })],
  ['many small members', 'size', data(Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, n])))],
  ['many empty arrays', 'size', data({ list: Array.from({ length: BYTES }, () => []) })],
  ['a file', 'size', messageContent([{ kind: 'file', file: { bytes: 'QUJD'.repeat(BYTES / 4) } }], {})],
  ['an answer of a byte too many', 'size', sized(BYTES + 1, output)],
  ['a long error', 'size', outputContent({ error: { code: 'X', message: 'a'.repeat(BYTES) } })],
  ['arguments of a byte too many', 'size', sized(BYTES + 1, (text) => call({ text }))],
  ['a result of a byte too many', 'size', sized(BYTES + 1, (text) => toolResult({ text }))],
  ['a result that is one text', 'size', toolResult('a'.repeat(BYTES))],
  ['arguments that nest too deep', 'depth', call(objects(DEPTH + 1))],
  ['arrays that nest too deep', 'depth', call({ a: arrays(DEPTH) })],
  ['a deep member behind shallow ones', 'depth', call({ a: 1, b: [2], c: objects(DEPTH) })],
  ['a deep data part', 'depth', data(objects(DEPTH - 2))],
  ['a deep result', 'depth', toolResult(arrays(DEPTH + 1))],
  ['a nesting beyond what is walked', 'depth', call({ a: arrays(120) })],
  ['a call inside too many others', 'hops', call({ a: 1 }, HOPS + 1)],
  ['a call inside very many others', 'hops', call({ a: 1 }, 100)],
  ['the same call once too often', 'repeated_calls', call({ a: 1 }, 1, REPEATS + 1)],
  ['a loop of the same call', 'repeated_calls', call({}, 1, 10_000)],
])('%s is found', (_what, rule, content) => {
  expect(strict.inspect(content)).toMatchObject([{ guard: 'limits', decision: 'deny', rule, path: '' }]);
});

test.each<[what: string, content: GuardedContent]>([
  ['a message of the last byte', sized(BYTES, message)],
  ['a short message', message('hi')],
  ['an empty text', message('')],
  ['no parts', messageContent([], {})],
  ['letters of two bytes', message('é'.repeat(20))],
  ['emoji', message('😀😀😀')],
  ['quotation marks', message('She said "hello"')],
  [
    'several parts',
    messageContent(
      Array.from({ length: 5 }, () => ({ kind: 'text', text: 'hi' })),
      {},
    ),
  ],
  ['metadata', message('hi', { agent_type: 'writer', skill_id: 'translate' })],
  ['a data part', data({ order: 7, items: [{ id: 1 }] })],
  ['a small file', messageContent([{ kind: 'file', file: { bytes: 'QUJD', name: 'a.txt' } }], {})],
  ['an answer of the last byte', sized(BYTES, output)],
  ['an answer without artifacts', outputContent({ artifacts: [] })],
  ['a short error', outputContent({ error: { code: 'X', message: 'It failed.' } })],
  ['arguments of the last byte', sized(BYTES, (text) => call({ text }))],
  ['no arguments', call({})],
  ['numbers, true, false and null', call({ n: 1e300, t: true, f: false, none: null })],
  ['a result of the last byte', sized(BYTES, (text) => toolResult({ text }))],
  ['a result that is a number', toolResult(7)],
  ['no result', toolResult(null)],
  ['arguments as deep as they may be', call(objects(DEPTH))],
  ['arrays as deep as they may be', call({ a: arrays(DEPTH - 1) })],
  ['many members beside each other', call({ a: [], b: [], c: {}, d: { e: {} }, f: [[], [], []] })],
  ['a data part as deep as it may be', data(objects(DEPTH - 3))],
  ['as many calls inside each other as may be', call({ a: 1 }, HOPS)],
  ['the same call as often as it may be made', call({ a: 1 }, 1, REPEATS)],
  ['a text about depth', call({ text: '[[[[[[[[[[{{{{{{{{{{' })],
])('%s is let through', (_what, content) => {
  expect(strict.inspect(content)).toEqual([]);
});

test('every bound that is exceeded is told', () => {
  const content = call({ a: arrays(DEPTH), text: 'a'.repeat(BYTES) }, HOPS + 1, REPEATS + 1);
  const rules = strict.inspect(content).map(({ rule }) => rule);
  expect(rules).toEqual(['size', 'depth', 'hops', 'repeated_calls']);
});

test("the platform's own bounds are no reason to look at anything, nor to count calls", () => {
  const counted = { hops: 1, repeats: () => expect.unreachable('nothing bounds repeated calls') };
  expect(asDefault.inspect(toolArguments({ a: arrays(20) }, counted))).toEqual([]);
  for (const stage of ['message', 'output', 'tool_arguments', 'tool_result'] as const)
    expect(asDefault.inspects(stage)).toBe(false);
});
