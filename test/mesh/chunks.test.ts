import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../contracts/limits.js';
import { ChunkLog } from '../../mesh/connected/chunks.js';

const text = (value: string) => ({ kind: 'text' as const, text: value });

describe('the chunks of a dispatch', () => {
  it('grow one artifact of one text part, however many they are', () => {
    const log = new ChunkLog('own');
    for (let seq = 0; seq < 1_000; seq += 1) log.push({ seq, parts: [text(`${seq % 10}`)] });
    expect(log.artifacts()).toEqual([{ artifactId: 'own', parts: [text('0123456789'.repeat(100))] }]);
    expect(log.count).toBe(1_000);
  });

  it('are told to watchers as they came', () => {
    const log = new ChunkLog('own');
    expect(log.push({ seq: 0, parts: [text('a')] })).toEqual({
      kind: 'taken',
      events: [
        { kind: 'artifact', artifact: { artifactId: 'own', parts: [text('a')] }, append: false, last_chunk: false },
      ],
    });
    expect(log.push({ seq: 1, parts: [text('b')], status_text: 'nearly', last_chunk: true })).toEqual({
      kind: 'taken',
      events: [
        { kind: 'artifact', artifact: { artifactId: 'own', parts: [text('b')] }, append: true, last_chunk: true },
        { kind: 'status_text', text: 'nearly' },
      ],
    });
  });

  it('may name artifacts, replace them or append to them', () => {
    const log = new ChunkLog('own');
    log.push({ seq: 0, artifact: { artifactId: 'a', name: 'report', parts: [text('draft')] } });
    log.push({ seq: 1, artifact: { artifactId: 'a', name: 'report', parts: [text('one')] } });
    log.push({
      seq: 2,
      artifact: { artifactId: 'a', parts: [text(' two'), { kind: 'data', data: { n: 1 } }] },
      append: true,
    });
    expect(log.artifacts()).toEqual([
      { artifactId: 'a', name: 'report', parts: [text('one two'), { kind: 'data', data: { n: 1 } }] },
    ]);
  });

  it('put a surrogate pair together again, and replace half of one', () => {
    const log = new ChunkLog('own');
    log.push({ seq: 0, parts: [text('\ud83d')] });
    log.push({ seq: 1, parts: [text('\ude00 \ud83d')] });
    expect(log.artifacts()[0]?.parts).toEqual([text('\ud83d\ude00 \ufffd')]);
  });

  it('are well-formed in the end, wherever half a surrogate pair was', () => {
    const log = new ChunkLog('own');
    const half = { n: ['\ud83d', { deep: '\ude00' }] };
    const said = { artifactId: '\ud83d', name: '\ud83d', description: '\ud83d', metadata: half };
    const parts = [
      { kind: 'data' as const, data: half, metadata: half },
      { kind: 'file' as const, file: { uri: 'https://example.com/\ud83d' } },
    ];
    expect(log.push({ seq: 0, artifact: { ...said, parts }, status_text: '\ud83d' })).toMatchObject({
      events: [{ kind: 'artifact' }, { kind: 'status_text', text: '\ufffd' }],
    });
    const whole = JSON.parse(JSON.stringify([{ ...said, parts }]).replaceAll(/\\ud83d|\\ude00/g, '\ufffd')) as unknown;
    expect(log.artifacts()).toEqual(whole);
    expect(half.n[0]).toBe('\ud83d');
  });

  it('that come again are dropped, and a missing one is seen', () => {
    const log = new ChunkLog('own');
    log.push({ seq: 0, parts: [text('a')] });
    expect(log.push({ seq: 0, parts: [text('a')] })).toEqual({ kind: 'repeat' });
    expect(log.push({ seq: 2, parts: [text('c')] })).toEqual({ kind: 'gap' });
    expect(new ChunkLog('own').push({ seq: 1 })).toEqual({ kind: 'gap' });
    expect(log.artifacts()[0]?.parts).toEqual([text('a')]);
  });

  it('are bounded in bytes and in artifacts', () => {
    const large = new ChunkLog('own');
    const half = 'x'.repeat(LIMITS.chunkBytesBufferedPerDispatch / 2);
    expect(large.push({ seq: 0, parts: [text(half)] }).kind).toBe('taken');
    expect(large.push({ seq: 1, parts: [text(half)] }).kind).toBe('overflow');
    const many = new ChunkLog('own');
    const push = (seq: number) => many.push({ seq, artifact: { artifactId: `a${seq}`, parts: [] } }).kind;
    for (let seq = 0; seq < LIMITS.chunksBufferedPerDispatch; seq += 1) expect(push(seq)).toBe('taken');
    expect(push(LIMITS.chunksBufferedPerDispatch)).toBe('overflow');
  });

  it.each([false, true])('are bounded with all that an artifact carries beside its parts (append: %s)', (append) => {
    const metadata = { note: 'x'.repeat(LIMITS.chunkBytesBufferedPerDispatch / 2) };
    for (const extra of [{ metadata }, { name: metadata.note }, { description: metadata.note }]) {
      const log = new ChunkLog('own');
      const push = (seq: number) =>
        log.push({ seq, artifact: { artifactId: append ? 'a' : `a${seq}`, ...extra, parts: [] }, append }).kind;
      expect([push(0), push(1)]).toEqual(['taken', 'overflow']);
    }
  });

  it('make room again by replacing an artifact', () => {
    const log = new ChunkLog('own');
    const metadata = { note: 'x'.repeat(LIMITS.chunkBytesBufferedPerDispatch / 3) };
    for (let seq = 0; seq < 10; seq += 2) {
      expect(log.push({ seq, artifact: { artifactId: 'a', metadata, parts: [] } }).kind).toBe('taken');
      expect(log.push({ seq: seq + 1, artifact: { artifactId: 'a', parts: [text('x')] }, append: true }).kind).toBe(
        'taken',
      );
    }
  });

  it('of a word each may be as many as their text has room for', () => {
    const log = new ChunkLog('own');
    for (let seq = 0; seq < 60_000; seq += 1) {
      if (log.push({ seq, artifact: { artifactId: 'answer', parts: [text('word ')] }, append: true }).kind !== 'taken')
        break;
    }
    expect(log.count).toBe(60_000);
  });
});
