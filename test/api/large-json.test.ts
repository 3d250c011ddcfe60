import { afterAll, describe, expect, test } from 'vitest';
import { parseJson } from '../../api/plugins/json-body.js';
import { LargeJson } from '../../api/plugins/large-json.js';
import { LIMITS } from '../../contracts/limits.js';
import { PlatformError } from '../../runtime/errors.js';
import { createLogger } from '../../runtime/logger.js';

const MIB = 1024 * 1024;
const large = new LargeJson(createLogger({ level: 'error' }));
afterAll(() => large.close());

const long = 'long text '.repeat(LIMITS.longTextChars);
/** Turns of the event loop until the work is done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work;
  isOver = true;
  return turns;
}

/** What both ways of parsing make of a text. */
async function outcomes(bytes: Buffer): Promise<[unknown, unknown]> {
  const asPair = (error: unknown): unknown => (error instanceof PlatformError ? [error.code, error.message] : error);
  const direct = await Promise.resolve()
    .then(() => parseJson(bytes))
    .catch(asPair);
  return [await large.parse(Buffer.concat([bytes])).catch(asPair), direct];
}

describe('a large JSON text', () => {
  test.each<[string, string | Buffer]>([
    ['a text alone', JSON.stringify(long)],
    ['texts among other values', JSON.stringify({ a: [1, long, { b: long, c: null, d: 'short' }], e: `${long}é😀` })],
    ['a text that begins as a file with a byte-order mark does', JSON.stringify({ a: `\uFEFF${long}` })],
    ['half of a character', `{"a":"${long}\\ud800","b":"\\ud800"}`],
    ['a key twice', `{"a":"${long}","a":"${long}2"}`],
    ['a long key', JSON.stringify({ [long]: long })],
    ['keys that are names of members of objects', JSON.stringify({ constructor: long, toString: long })],
    ['no texts', '[1,2,3]'],
    ['a prototype', `{"a":"${long}","__proto__":{"b":"${long}"}}`],
    ['a NUL', `{"a":"${long}\\u0000"}`],
    ['too many levels', `{"a":"${long}","b":${'['.repeat(40)}${']'.repeat(40)}}`],
    ['no end', `{"a":"${long}"`],
    ['more behind its end', `{"a":"${long}"} x`],
    ['broken UTF-8', Buffer.concat([Buffer.from(`{"a":"${long}`), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])],
    ['more values than a large body may have', `[${'1,'.repeat(MIB)}1]`],
    ['nothing', ''],
  ])('with %s is what it is on the event loop', async (_, text) => {
    const [inThread, direct] = await outcomes(Buffer.from(text));
    expect(inThread).toEqual(direct);
  });

  test('leaves the event loop free, whether it is valid or not', async () => {
    const texts = Array.from({ length: 100 }, () => 'A sentence — one of many.\n'.repeat(12_000));
    const valid = Buffer.from(JSON.stringify({ documents: texts }));
    for (const bytes of [valid, valid.subarray(0, -2)]) {
      // On the event loop it would be one.
      expect(await turnsDuring(large.parse(Buffer.from(bytes)))).toBeGreaterThan(100);
    }
  });

  test('may have so many characters beside its long texts', async () => {
    const short = 'x'.repeat(LIMITS.longTextChars);
    const texts = (count: number) => Buffer.from(JSON.stringify([long, ...new Array(count).fill(short)]));
    const most = Math.floor(LIMITS.largeBodyRestChars / (LIMITS.longTextChars + '"",'.length));
    await expect(large.parse(texts(most - 1))).resolves.toBeDefined();
    await expect(large.parse(texts(most + 1))).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    await expect(large.parse(Buffer.from(JSON.stringify([long])))).resolves.toEqual({ value: [long] });
  });

  test('is parsed beside others, each for itself', async () => {
    const values = Array.from({ length: 8 }, (_, at) => ({ at, text: `${long}${at}` }));
    const parsed = await Promise.all(values.map((value) => large.parse(Buffer.from(JSON.stringify(value)))));
    expect(parsed).toEqual(values.map((value) => ({ value })));
  });

  test('that is parsed when the process ends is refused', async () => {
    const ending = new LargeJson(createLogger({ level: 'error' }));
    const parsing = ending.parse(Buffer.from(JSON.stringify([long])));
    await Promise.all([expect(parsing).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' }), ending.close()]);
  });
});
