import { afterEach, expect, test, vi } from 'vitest';
import type { LiveMessage } from '../../messages/dispatch/dispatches.js';
import { liveTask } from '../../messages/read/task.js';
import { type EndedRow, LocalChanges } from '../../messages/stream/local-changes.js';

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

test('a call that ends leaves the later call for the same message its notice', () => {
  const local = new LocalChanges();
  const earlier = local.follow('msg_1');
  const later = local.follow('msg_1');
  earlier[Symbol.dispose]();
  const ended = { state: 'completed' } as EndedRow;
  local.note('msg_1', ended);
  expect(later.ended).toBe(ended);
  expect(earlier.ended).toBeUndefined();
});

test('a call that ends leaves the later call for the same message its wake-up', () => {
  const local = new LocalChanges();
  const [earlierWake, laterWake] = [vi.fn(), vi.fn()];
  const earlier = local.onToolRequest('msg_1', earlierWake);
  local.onToolRequest('msg_1', laterWake);
  earlier[Symbol.dispose]();
  local.noteToolRequest('msg_1');
  expect(laterWake).toHaveBeenCalledOnce();
  expect(earlierWake).not.toHaveBeenCalled();
});
