import { expect, test, vi } from 'vitest';
import { about, dispatch, serving } from './serving.js';

test('the outcomes of all streams that broke at once are kept, however many were sent meanwhile', async () => {
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const running = vi.fn();
  const { post, ask } = await serving((agent) =>
    agent.onMessage(async (task) => {
      if (task.text === 'quick') return 'quick';
      running();
      await finished;
      return `done ${task.dispatchId}`;
    }),
  );
  const ids = Array.from({ length: 100 }, (_, index) => `dsp_${index}`);
  const cut = new AbortController();
  const streams = ids.map((id) => post(dispatch('message/stream', '', { id }), undefined, cut.signal));
  await vi.waitFor(() => expect(running).toHaveBeenCalledTimes(100), 20_000);
  await Promise.all(streams);
  cut.abort(); // as a node that dies
  await expect(Promise.all(streams.map(async (stream) => (await stream).text()))).rejects.toThrow();
  finish();
  for (let sent = 0; sent < 70; sent += 1) await ask(dispatch('message/send', 'quick', { id: `quick_${sent}` }));
  const states = await Promise.all(ids.map(async (id) => (await ask(about('tasks/get', id))).result?.status.state));
  expect(states).toEqual(ids.map(() => 'completed'));
});

test('a call that waits for a human goes on when the platform was away meanwhile', async () => {
  const pending = { ok: false, error: { code: 'APPROVAL_PENDING', message: 'wait', retryable: true } };
  const away = { status: 503, error: 'restarting', code: 'SERVICE_UNAVAILABLE' };
  const answers = [away, pending, away, { ok: true, result: 'approved' }];
  const { ask, calls } = await serving(
    (agent) => agent.onMessage(async (task) => String(await task.callTool('pay', {}))),
    () => answers.shift() ?? {},
  );
  expect((await ask(dispatch('message/send', 'go'))).result).toMatchObject({
    artifacts: [{ parts: [{ text: 'approved' }] }],
  });
  expect(new Set(calls.map(({ body }) => body.idempotency_key)).size).toBe(1);
});

test('a failure has its code beside the text', async () => {
  const { ask } = await serving((agent) =>
    agent.onMessage(() => ({ state: 'failed', code: 'SOLD_OUT', message: 'no tea' })),
  );
  expect((await ask(dispatch('message/send', 'tea'))).result).toMatchObject({
    status: { state: 'failed' },
    metadata: { error: { code: 'SOLD_OUT', message: 'no tea' } },
  });
});

test('an agent that listens everywhere says where it can be reached', async () => {
  const { agent } = await serving((shop) => shop.onMessage(() => ''));
  await agent.close(0);
  const { Agent } = await import('../../../sdk/index.js');
  const other = new Agent({ url: 'http://127.0.0.1:1', token: 't', type: 'shop', drainOnSignals: false });
  await expect(other.serve({ host: '0.0.0.0' })).rejects.toThrow('publicUrl');
});
