import { afterEach, expect, test, vi } from 'vitest';
import type { LiveMessage } from '../../messages/dispatch/dispatches.js';
import { liveTask } from '../../messages/read/task.js';
import { LocalChanges } from '../../messages/stream/local-changes.js';

afterEach(() => {
  vi.useRealTimers();
});

test('a blocking caller is woken as a human is asked about a tool call, although its dispatch goes on', async () => {
  vi.useFakeTimers(); // the time after which it looks anyway never comes
  const local = new LocalChanges();
  const live = { row: { message_id: 'msg_1' }, ended: new Promise(() => undefined) } as unknown as LiveMessage;
  const waiting = liveTask(
    live,
    { blocking: true, until: Date.now() + 60_000, signal: () => new AbortController().signal },
    local,
  );
  local.noteToolRequest('msg_2');
  local.noteToolRequest('msg_1');
  expect(await waiting).toBeNull();
  expect(vi.getTimerCount()).toBe(0);
});
