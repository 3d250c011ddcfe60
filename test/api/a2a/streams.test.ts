import { describe, expect, test } from 'vitest';
import type { StreamEvent, Task } from '../../../contracts/a2a/a2a.js';
import type { Artifact } from '../../../contracts/a2a/parts.js';
import type { BusEvent } from '../../../messages/stream/bus.js';
import { textMessage } from '../../setup/core.js';
import { createGateway } from '../../setup/gateway.js';
import { assembled, StreamReader } from '../../setup/stream-reader.js';
import { until } from '../../setup/until.js';
import { connect } from '../../telemetry/event-writer.js';
import { ASKS, answerMessage, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');

/** Sends the message and reads its stream. */
const read = (message: object, lastEventId?: string) =>
  new StreamReader(api.client, 'message/stream', { message }, lastEventId);

const newMessage = (change: object = {}) => textMessage('hello', change);

/** A message with somebody who reads its stream, and what an agent says. */
async function streamed(message: { messageId: string } = newMessage()) {
  const reader = read(message);
  await reader.has(1);
  const { id } = reader.events[0] as Task;
  const say = (event: BusEvent) => api.core.bus.publish(api.tenantId, id, event);
  const chunk = (artifactId: string, text: string, append: boolean) =>
    say({ kind: 'artifact', artifact: textArtifact(artifactId, text), append, last_chunk: false });
  return { message, reader, id, say, chunk };
}

function textArtifact(artifactId: string, text: string): Artifact {
  return { artifactId, parts: [{ kind: 'text', text }] };
}

const outcome = (...artifacts: Artifact[]) => ({ state: 'completed' as const, artifacts });
/** Without the states that are over by the time of a resume: those are not told again. */
const lasting = (events: StreamEvent[]) =>
  events.filter((event) => event.kind !== 'status-update' || event.final || event.status.message !== undefined);

/** The artifacts that were updated. */
const shown = (events: StreamEvent[]) =>
  events.flatMap((event) => (event.kind === 'artifact-update' ? [event.artifact.artifactId] : []));

/** From each event of a stream that has ended, a reader is told those after it. */
async function expectResumable(message: object, { seen, events }: StreamReader): Promise<void> {
  for (const [index, { id }] of seen.entries()) {
    const late = read(message, id);
    await late.done;
    expect(late.events).toEqual(lasting(events.slice(index + 1)));
  }
}

describe('a reader that comes back with Last-Event-ID', () => {
  test('is told exactly what it missed, wherever it left, while the message runs and after its end', async () => {
    const { message, reader, id, say, chunk } = await streamed();
    chunk('a', 'one ', false);
    chunk('a', 'two ', true);
    say({ kind: 'status_text', text: 'thinking' });
    chunk('b', 'other', false);
    chunk('a', 'three', true);
    await reader.has(6);
    const early = reader.seen[2];
    const again = read(message, early?.id);
    await again.has(3);
    await answerMessage(api, id, outcome(textArtifact('a', 'one two three'), textArtifact('b', 'other')));
    await Promise.all([reader.done, again.done]);
    expect(lasting(again.events)).toEqual(lasting(reader.events.slice(3)));
    await expectResumable(message, reader);
    expect(reader.events.filter((event) => 'final' in event && event.final)).toEqual([reader.events.at(-1)]);
    expect(reader.events.at(-1)).toMatchObject({ kind: 'status-update', status: { state: 'completed' } });
    expect(reader.seen.filter(({ event }) => event.kind === 'artifact-update')).toHaveLength(4);
  });

  test('gets artifacts that came with the result once, also between two of them', async () => {
    const { message, reader, id, chunk } = await streamed();
    chunk('streamed', 'all', false);
    await reader.has(2);
    const all = [textArtifact('streamed', 'all'), textArtifact('x', '1'), textArtifact('y', '2')];
    await answerMessage(api, id, outcome(...all));
    await reader.done;
    expect(shown(reader.events)).toEqual(['streamed', 'x', 'y']);
    await expectResumable(message, reader);
  });

  test('gets the task first, and what it lacks whole at the end, when too much was said meanwhile', async () => {
    const { message, reader, id, chunk } = await streamed();
    chunk('a', '0 ', false);
    await reader.has(2);
    await reader.leave();
    const words = Array.from({ length: 400 }, (_, n) => `${n + 1} `);
    for (const word of words) chunk('a', word, true);
    chunk('b', 'begun late', false);
    const again = read(message, reader.seen[1]?.id);
    await again.has(2);
    await answerMessage(api, id, outcome(textArtifact('a', `0 ${words.join('')}`), textArtifact('b', 'begun late')));
    await again.done;
    expect(again.events.map(({ kind }) => kind)[0]).toBe('task');
    const updates = again.events.filter((event) => event.kind === 'artifact-update');
    expect(updates).toMatchObject([
      { artifact: { artifactId: 'b' }, append: false },
      { artifact: { artifactId: 'a' }, append: false, lastChunk: true },
    ]);
    const all = assembled([...reader.events, ...again.events]);
    expect(Object.fromEntries(all)).toEqual({ a: `0 ${words.join('')}`, b: 'begun late' });
  });

  test.each(['', 'nonsense', '7', `${'x'.repeat(2_000)}`, 'abcdefgh.12.w'])(
    'begins anew with an id that is none of this stream: %.20s',
    async (lastEventId) => {
      const { message, reader } = await streamed();
      const again = read(message, lastEventId);
      await again.has(1);
      expect(again.seen[0]).toEqual(reader.seen[0]);
      await Promise.all([reader.leave(), again.leave()]);
    },
  );

  test('of another message begins anew', async () => {
    const [one, other] = [await streamed(), await streamed()];
    one.chunk('a', 'text', false);
    await one.reader.has(2);
    const again = read(other.message, one.reader.seen[1]?.id);
    await again.has(1);
    expect(again.events[0]).toMatchObject({ kind: 'task', id: other.id });
    await Promise.all([one.reader, other.reader, again].map((reader) => reader.leave()));
  });
});

describe('a message that asks a human', () => {
  test('ends the stream; the next one tells nothing that came before, and repeats nothing', async () => {
    const { message, reader, id, chunk } = await streamed();
    chunk('a', 'before', false);
    await reader.has(2);
    await answerMessage(api, id, { ...ASKS, artifacts: [textArtifact('a', 'before')] });
    await reader.done;
    const asked = reader.seen.at(-1);
    expect(asked?.event).toMatchObject({ final: true, status: { state: 'input-required' } });
    const idle = read(message, asked?.id);
    await idle.done;
    expect(idle.seen).toEqual([]);

    const answer = newMessage({ taskId: id, parts: [{ kind: 'text', text: 'approved' }] });
    const next = await streamed(answer);
    next.chunk('b', 'after', false);
    await next.reader.has(2);
    const resumed = read(message, asked?.id);
    await resumed.has(2);
    await answerMessage(api, id, outcome(textArtifact('b', 'after')));
    await Promise.all([next.reader.done, resumed.done]);
    expect(next.reader.events[0]).toMatchObject({ kind: 'task', artifacts: [{ artifactId: 'a' }] });
    expect([shown(next.reader.events), shown(resumed.events)]).toEqual([['b'], ['b']]);
    const states = resumed.events.flatMap((event) => (event.kind === 'status-update' ? [event.status.state] : []));
    expect(states).toEqual(['working', 'completed']);
  });

  test('shows an artifact that a later dispatch replaces as it then is', async () => {
    const { reader, id } = await streamed();
    await answerMessage(api, id, { ...ASKS, artifacts: [textArtifact('draft', 'first')] });
    await reader.done;
    const next = await streamed(newMessage({ taskId: id, parts: [{ kind: 'text', text: 'approved' }] }));
    await answerMessage(api, id, outcome(textArtifact('draft', 'second')));
    await next.reader.done;
    expect(assembled(next.reader.events).get('draft')).toBe('second');
  });
});

test('a result that differs from what was streamed replaces it', async () => {
  const { reader, id, chunk } = await streamed();
  chunk('a', 'half of', false);
  await reader.has(2);
  await answerMessage(api, id, outcome(textArtifact('a', 'half of it')));
  await reader.done;
  expect(assembled(reader.events).get('a')).toBe('half of it');
});

test('a stream outlives connections to the database that break while it looks at its message', async () => {
  const { reader, id, chunk } = await streamed();
  chunk('a', 'begun ', false);
  await reader.has(2);
  const blocker = await connect(api.database.url);
  await blocker.query('BEGIN; LOCK TABLE messages IN ACCESS EXCLUSIVE MODE');
  api.core.bus.publish(api.tenantId, id, { kind: 'changed' });
  const broken = await until(async () => {
    const waiting = 'WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))';
    return (await blocker.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity ${waiting}`)).rowCount;
  });
  expect(broken).toBe(1);
  await blocker.query('COMMIT');
  chunk('a', 'and ended', true);
  await answerMessage(api, id, outcome(textArtifact('a', 'begun and ended')));
  await reader.done;
  expect(reader.events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
  expect(reader.events.filter((event) => event.kind === 'artifact-update')).toMatchObject([
    { append: false },
    { append: true, artifact: { parts: [{ text: 'and ended' }] } },
  ]);
});

test('a reader that lags misses output beyond a bound, has every artifact whole in the end, and holds up nobody', async () => {
  const { reader, id, chunk } = await streamed();
  const lagging: StreamEvent[] = [];
  const stream = createGateway(api.core).stream(api.tenantId, id, { signal: new AbortController().signal });
  const slow = stream[Symbol.asyncIterator]();
  lagging.push((await slow.next()).value.event);
  const pieces = Array.from({ length: 1_500 }, (_, n) => `${n} ${'x'.repeat(1_000)}`);
  for (const [n, piece] of pieces.entries()) {
    chunk('a', piece, n > 0);
    if (n % 100 === 99) await reader.has(n + 2);
  }
  chunk('b', 'short', false);
  await answerMessage(api, id, outcome(textArtifact('a', pieces.join('')), textArtifact('b', 'short')));
  await reader.done;
  const appended = reader.events.filter((event) => event.kind === 'artifact-update' && event.append);
  expect(appended).toHaveLength(pieces.length - 1);
  for await (const { event } of { [Symbol.asyncIterator]: () => slow }) lagging.push(event);
  const kept = lagging.filter((event) => event.kind === 'artifact-update' && event.lastChunk !== true);
  expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThan(2 * 1024 * 1024);
  expect(assembled(lagging)).toEqual(assembled(reader.events));
  expect(lagging.at(-1)).toMatchObject({ final: true });
});
