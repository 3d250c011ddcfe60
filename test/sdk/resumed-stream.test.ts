import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { resumedStream } from '../../sdk/client/send/resumed-stream.js';
import type { NumberedEvent } from '../../sdk/client/send/rpc.js';
import { type StreamEvent, UnreachableError } from '../../sdk/index.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

const MINUTE_MS = 60_000;
const pass = (ms: number) => void vi.setSystemTime(Date.now() + ms);
const task = { kind: 'task', id: 'msg_1', contextId: 'ses_1', status: { state: 'working' } } as StreamEvent;
const final = {
  kind: 'status-update',
  taskId: 'msg_1',
  contextId: 'ses_1',
  status: { state: 'completed' },
  final: true,
} as StreamEvent;

/** A connection that tells these events, and then breaks after a while. */
async function* connection(events: StreamEvent[], silentMs: number): AsyncGenerator<NumberedEvent> {
  for (const [index, event] of events.entries()) yield { id: `${index}`, event };
  pass(silentMs);
}

async function followed(connections: (() => AsyncIterable<NumberedEvent>)[]): Promise<string[]> {
  const kinds: string[] = [];
  const open = async () => {
    const next = connections.shift();
    if (!next) throw new UnreachableError('/send', new Error('nobody is there'));
    return next();
  };
  for await (const { kind } of resumedStream(open, { taskId: '', lastEventId: '' }, undefined)) kinds.push(kind);
  return kinds;
}

test('a stream goes on after connections on which nothing was told for long', async () => {
  const quiet = () => connection([], 10 * MINUTE_MS);
  const connections = [() => connection([task], 10 * MINUTE_MS), quiet, quiet, () => connection([final], 0)];
  expect(await followed(connections)).toEqual(['task', 'status-update']);
});

test('a stream is given up after two minutes of connections that end at once', async () => {
  const brief = () => connection([], 0);
  const gone = () => {
    pass(3 * MINUTE_MS);
    return brief();
  };
  await expect(followed([() => connection([task], 0), brief, gone])).rejects.toBeInstanceOf(UnreachableError);
});
