import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, context, ROOT_CONTEXT, type Span, type SpanOptions, trace } from '@opentelemetry/api';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Agent, FleetClient } from '../../sdk/index.js';
import { run, runTool } from '../../sdk/testing/index.js';
import { answering } from './answering.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';

interface Made {
  name: string;
  id: string;
  parent: string | undefined;
  traceId: string;
  attributes: SpanOptions['attributes'];
  error?: string | undefined;
  isOver: boolean;
}
const spans: Made[] = [];

/** The part of an SDK of OpenTelemetry that matters here: spans with their parents, and the current one. */
function spanOf(name: string, { attributes }: SpanOptions, parent: Context): Span {
  const of = trace.getSpanContext(parent);
  const id = (spans.length + 1).toString(16).padStart(16, '0');
  const made: Made = { name, id, parent: of?.spanId, traceId: of?.traceId ?? TRACE, attributes, isOver: false };
  spans.push(made);
  const span = {
    spanContext: () => ({ traceId: made.traceId, spanId: id, traceFlags: 1 }),
    recordException: () => undefined,
    setStatus: ({ message }: { message?: string }) => {
      made.error = message;
    },
    end: () => {
      made.isOver = true;
    },
  };
  return span as unknown as Span;
}

const active = new AsyncLocalStorage<Context>();
const tracer = {
  startActiveSpan(name: string, options: SpanOptions, parent: Context, work: (span: Span) => unknown) {
    const span = spanOf(name, options, parent);
    return active.run(trace.setSpan(parent, span), () => work(span));
  },
};

beforeAll(() => {
  trace.setGlobalTracerProvider({ getTracer: () => tracer as never });
  context.setGlobalContextManager({
    active: () => active.getStore() ?? ROOT_CONTEXT,
    with: (given, work, self, ...args) => active.run(given, () => work.apply(self, args)),
    bind: (_given, target) => target,
    enable: () => undefined as never,
    disable: () => undefined as never,
  });
});
afterAll(() => {
  trace.disable();
  context.disable();
});

const shop = new Agent({ type: 'shop' })
  .onMessage(async (task) => `${await task.callTool('price')}`)
  .skill('asks', async (task) => {
    await task.ask({ kind: 'confirmation', title: 'Sure?', prompt: 'Sure?' });
  })
  .skill('fails', () => Promise.reject(new Error('no luck')))
  .tool('price', {}, () => 250);

const traceparent = `00-${TRACE}-${CALLER}-01`;

test('the spans of handlers and tools join the trace of their caller', async () => {
  spans.length = 0;
  await run(shop, 'hi', { traceparent, tools: { price: 250 }, messageId: 'msg_1' });
  await run(shop, 'hi', { traceparent, skillId: 'asks' });
  await run(shop, 'hi', { traceparent, skillId: 'fails' });
  await runTool(shop, 'price');
  expect(spans).toMatchObject([
    { name: 'onMessage', parent: CALLER, traceId: TRACE, isOver: true, attributes: { 'fleet.message.id': 'msg_1' } },
    { name: 'skill asks', parent: CALLER, isOver: true },
    { name: 'skill fails', parent: CALLER, isOver: true, error: 'no luck' },
    { name: 'tool price', parent: undefined, isOver: true },
  ]);
});

test('a client passes the current span on, and no other', async () => {
  const seen: (string | undefined)[] = [];
  const { url } = await answering(({ traceparent }) => {
    seen.push(traceparent);
    return { jsonrpc: '2.0', id: 1, result: { kind: 'task', id: 'm', contextId: 's', status: { state: 'completed' } } };
  });
  const client = new FleetClient({ url, token: 't' });
  await client.send('hi');
  const agent = new Agent({ type: 'shop' }).onMessage(async () => (await client.send('hi')).id);
  await run(agent, 'hi', { traceparent });
  client.destroy();
  expect(seen).toEqual([undefined, `00-${TRACE}-${spans.at(-1)?.id}-01`]);
});
