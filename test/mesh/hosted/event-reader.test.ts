import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { EventReader } from '../../../http/event-reader.js';

/** The events in these chunks, and the problem with them. */
function readAll(...chunks: (string | Uint8Array)[]): { events: string[]; problem: string | undefined } {
  const reader = new EventReader();
  const events: string[] = [];
  for (const chunk of chunks) for (const event of reader.read(Buffer.from(chunk))) events.push(event);
  return { events, problem: reader.problem };
}

const eventsIn = (...chunks: (string | Uint8Array)[]) => readAll(...chunks).events;

describe('events in a stream', () => {
  it('are its data, ended by a blank line', () => {
    expect(eventsIn('data: one\n\ndata:two\n\ndata: not ended\n')).toEqual(['one', 'two']);
    expect(eventsIn('data:  two lines\ndata: of it\n\n')).toEqual([' two lines\nof it']);
    expect(eventsIn('data\n\ndata:\n\ndata\ndata\n\n')).toEqual(['', '', '\n']);
    expect(eventsIn('\ufeffdata: x\n\n')).toEqual(['x']);
  });

  it('have nothing to do with comments and other fields', () => {
    expect(eventsIn(': hello\n\nevent: x\nid: 1\nretry: 5\ndatab: no\nnonsense\ndata: x\n: more\n\n')).toEqual(['x']);
  });

  it.each(['\n', '\r\n', '\r'])('are the same wherever the bytes are cut, with lines that end in %j', (end) => {
    const bytes = Buffer.from([': hi', 'data: grüße 😀', 'data: two', '', '', 'data: x', '', ''].join(end));
    const expected = ['grüße 😀\ntwo', 'x'];
    expect(eventsIn(...[...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(eventsIn(bytes.subarray(0, cut), new Uint8Array(), bytes.subarray(cut))).toEqual(expected);
    }
  });

  it('may come behind a flood of blank lines in the same chunk', () => {
    expect(eventsIn(`data: x\n\n${'\n'.repeat(900_000)}data: y\n\n`)).toEqual(['x', 'y']);
  });

  it('may come behind millions of lines and a CR: time that grew with their square would not end', () => {
    const chunk = Buffer.from(`${'\n'.repeat(4_000_000)}\r`);
    expect(eventsIn(chunk, 'data: x\n\n')).toEqual(['x']);
  });

  it('may end in single bytes behind a long line', () => {
    const reader = new EventReader();
    reader.read(Buffer.from(`data: ${'x'.repeat(500_000)}`));
    for (let n = 0; n < 200_000; n += 1) reader.read(Buffer.from('y'));
    expect(reader.read(Buffer.from('\n\n'))).toEqual(['x'.repeat(500_000) + 'y'.repeat(200_000)]);
    expect(reader.problem).toBeUndefined();
  });
});

describe('a stream is read no further', () => {
  const large = 'x'.repeat(LIMITS.frameBytes + 1);

  it('than an event of more than 1 MiB, however it is laid out', () => {
    const problem = expect.stringMatching(/1 MiB/);
    expect(readAll(`data: x\n\ndata: ${large}`)).toEqual({ events: ['x'], problem });
    expect(readAll(`data: ${large}\n\n`)).toEqual({ events: [], problem });
    expect(readAll(`: ${large}`)).toEqual({ events: [], problem });
    expect(readAll('data\n'.repeat(LIMITS.frameBytes / 2), 'data\n'.repeat(LIMITS.frameBytes))).toMatchObject({
      problem: expect.any(String),
    });
    const quarter = large.slice(0, LIMITS.frameBytes / 4);
    expect(readAll(...Array.from({ length: 8 }, () => `data: ${quarter}\n\n`)).problem).toBeUndefined();
    expect(readAll(...Array.from({ length: 8 }, () => `: ${quarter}\n`)).problem).toBeUndefined();
  });

  it('than a thousand lines that are no field of an event', () => {
    const { events, problem } = readAll(`data: x\n\n${'nonsense\n'.repeat(1_001)}`, 'data: y\n\n');
    expect(events).toEqual(['x']);
    expect(problem).toMatch(/1000 lines/);
  });

  it('than a hundred thousand events', () => {
    const { events, problem } = readAll('data: x\n\n'.repeat(100_001));
    expect(events).toHaveLength(100_000);
    expect(problem).toMatch(/100000 events/);
  });
});
