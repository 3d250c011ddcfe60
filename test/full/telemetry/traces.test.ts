import { expect, test } from 'vitest';
import { AlertRule } from '../../../contracts/api/alerts.js';
import { MessageGetByIdResponse, ResolveResponse } from '../../../contracts/api/messages.js';
import { PlanResponse } from '../../../contracts/api/plans.js';
import { PolicyResponse } from '../../../contracts/api/policies/policies.js';
import {
  GetEventsResponse,
  type Trace,
  TraceResponse,
  type TraceSpan,
  TracesResponse,
} from '../../../contracts/api/telemetry.js';
import { LIMITS } from '../../../contracts/limits.js';
import { spanIdOf, uuidOf } from '../../../runtime/ids.js';
import { callTool, resultOf, take } from '../../mesh/tools/tool-fixture.js';
import { createPlan, newSession, step, untilPlan } from '../../plans/plan-fixture.js';
import { type Behaviour, echo } from '../../setup/agent.js';
import { fleetClient } from '../../setup/fleet-client.js';
import { joinAgent, openSocket, registerAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { withClocks } from '../../setup/platform/platform-process.js';
import { receiver } from '../../setup/receiver.js';
import { until } from '../../setup/until.js';
import { joinType } from '../../system/fixture.js';
import { wantApproval } from '../../system/sdk-agents.js';
import { type CollectedSpan, sendTraced, TestCollector } from '../../telemetry/collector.js';
import { connect } from '../../telemetry/event-writer.js';

const CALLER_SPAN = 'b7ad6b7169203331';
const callersTrace = (digit: string) => digit.repeat(32);

const collector = await TestCollector.start();
const shared = await startPlatform({
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20secret',
  OTEL_SERVICE_NAME: 'fleet-under-test',
  ...withClocks({ exportPauseMaxMs: 1_000 }), // the collector is away at first
});
const { client } = shared.platform;
const exporting = async () => (await shared.database.query('SELECT 1 FROM trace_exports')).length > 0;
await until(exporting, { what: 'the exporter' });
await joinType(shared.platform, 'echo', echo);
const teller = await joinAgent(shared.platform, { instanceId: 'teller-1', agentType: 'teller', tools: ['pay'] });
await wantApproval(shared.platform);

/** Sends as a caller that has a trace of its own. @returns the id of the task */
async function sendIn(traceId: string, text: string, message: object = {}, metadata: object = {}): Promise<string> {
  const parts = [{ kind: 'text', text }];
  const traceparent = `00-${traceId}-${CALLER_SPAN}-01`;
  return sendTraced(client, { traceparent }, { message: { parts, ...message }, metadata });
}

const traceOf = async (trace_id: string): Promise<Trace> =>
  (await client.ok('/telemetry/get_traces', { trace_id }, TraceResponse)).trace;
/** The trace once it has spans of these names. */
const traceWith = (traceId: string, ...names: string[]): Promise<Trace> =>
  until(async () => {
    const read = await traceOf(traceId);
    return names.every((wanted) => read.spans.some(({ name }) => name === wanted)) && read;
  });
const traceOfMessage = async (messageId: string): Promise<string> =>
  (await client.ok('/messages/get_by_id', { message_id: messageId }, MessageGetByIdResponse)).message.trace_id;
const list = async (query: object) => (await client.ok('/telemetry/get_traces', query, TracesResponse)).traces;
const listed = async (query: object) => (await list(query)).map(({ trace_id }) => trace_id);

/** Each span as `name < name of its parent`. */
function shape({ spans }: Trace): string[] {
  const names = new Map(spans.map(({ span_id, name }) => [span_id, name]));
  return spans.map(({ name, parent_span_id }) => `${name} < ${names.get(parent_span_id ?? '') ?? parent_span_id}`);
}
/** The same, wherever a busy machine lets a message wait. */
const withoutWait = (trace: Trace) => shape(trace).filter((line) => line !== 'queue_wait < message/send');
const find = ({ spans }: Trace, name: string): TraceSpan => {
  const found = spans.find((span) => span.name === name);
  if (!found) throw new Error(`no span ${name}`);
  return found;
};

test('a message with a tool call that waits for approval shows all that happened, in order, with its parents', async () => {
  const traceId = callersTrace('a');
  await registerAgent(client, { instanceId: 'buyer-1', agentType: 'buyer' });
  const id = await sendIn(traceId, 'buy', {}, { agent_type: 'buyer' });
  const buyer = await openSocket(shared.platform, 'buyer-1');
  const arrives = buyer.nextOfType('dispatch');
  await buyer.hello({ agent_type: 'buyer' });
  const dispatch = await arrives;
  const { dispatch_id, session_context } = dispatch.payload as {
    dispatch_id: string;
    session_context: { session_id: string; propagation_headers: { traceparent: string } };
  };
  const agentSpan = spanIdOf(uuidOf(dispatch_id));
  expect(session_context.propagation_headers.traceparent).toBe(`00-${traceId}-${agentSpan}-01`);
  for (const seq of [0, 1]) buyer.send('dispatch_chunk', { seq, parts: [{ kind: 'text', text: 'so' }] }, dispatch.id);
  const own = { trace_id: traceId, parent_span_id: agentSpan };
  const call = callTool(buyer, { tool: 'pay', arguments: { amount: 5 }, dispatch_id }, own);
  expect(await resultOf(buyer, call)).toMatchObject({ error: { code: 'APPROVAL_PENDING' } });
  expect(await traceOf(traceId)).toMatchObject({ status: 'running', ended_at: null, duration_ms: null });
  await client.ok(`/messages/${id}/resolve`, { resolution: 'approved' }, ResolveResponse);
  const taken = await take(teller, 'pay');
  taken.result({ ok: true, result: 'paid' });
  expect(await resultOf(buyer, call)).toMatchObject({ ok: true });
  const usage = { input_tokens: 7, output_tokens: 11, model: 'model-large' };
  buyer.send('dispatch_result', { result: 'done', usage }, dispatch.id);
  await client.untilState(id, 'completed');
  const trace = await traceWith(traceId, 'execute_tool pay', 'chunks');
  const [message, admission, queue, dispatched, agent, ...others] = shape(trace);
  expect([message, admission, queue, dispatched, agent]).toEqual([
    `message/send < ${CALLER_SPAN}`,
    'admission < message/send',
    'queue_wait < message/send',
    'dispatch < message/send',
    'invoke_agent buyer < dispatch',
  ]);
  // Some of these begin in the same millisecond.
  expect(others.toSorted()).toEqual([
    'approval_wait < execute_tool pay',
    'chunks < invoke_agent buyer',
    'execute_tool pay < invoke_agent buyer',
    'policy < execute_tool pay',
  ]);
  const starts = trace.spans.map(({ start }) => start);
  expect(starts).toEqual(starts.toSorted());
  const { session_id } = session_context;
  expect(trace).toMatchObject({ session_id, root_agent: 'buyer', status: 'ok', span_count: trace.spans.length });
  expect(trace.spans.every(({ end, status }) => end !== null && status === 'ok')).toBe(true);
  expect(find(trace, 'invoke_agent buyer')).toMatchObject({
    span_id: agentSpan,
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'buyer',
      'gen_ai.agent.id': 'buyer-1',
      'gen_ai.conversation.id': session_id,
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 11,
      'gen_ai.response.model': 'model-large',
    },
  });
  const tool = find(trace, 'execute_tool pay');
  expect(tool.attributes).toMatchObject({ 'gen_ai.tool.name': 'pay', 'gen_ai.agent.id': 'buyer-1' });
  // The agent that has the tool continues from the call's span.
  expect(taken.frame).toMatchObject({ trace_id: traceId, parent_span_id: tool.span_id });
  expect(find(trace, 'chunks').attributes).toEqual({ 'fleet.chunk.count': 2 });
  const wait = find(trace, 'approval_wait');
  expect(wait.attributes).toMatchObject({ 'fleet.request.resolution': 'approved', 'fleet.policy.name': 'payments' });
  const within = (inner: TraceSpan, outer: TraceSpan) =>
    inner.start >= outer.start && (inner.end ?? '') <= (outer.end ?? '');
  expect(within(wait, tool) && within(tool, find(trace, 'invoke_agent buyer'))).toBe(true);
});

test('a decision is at its message, whatever else of its session and trace is at work', async () => {
  const look = { scope: 'tool', name: 'looks', decision: 'audit', match: { tools: ['look'] } };
  await client.ok('/policies/create_policy', look, PolicyResponse);
  const pair = await joinAgent(shared.platform, { instanceId: 'pair-1', agentType: 'pair' });
  const contextId = await newSession(client);
  const sent = async (text: string) => {
    const id = await sendIn(callersTrace('e'), text, { contextId }, { agent_type: 'pair' });
    const { id: frame, payload } = await pair.next(
      ({ type, payload }) => type === 'dispatch' && JSON.stringify(payload).includes(text),
    );
    return { id, frame, dispatch_id: String(payload.dispatch_id) };
  };
  const first = await sent('the first');
  const second = await sent('the second');
  await resultOf(pair, callTool(pair, { tool: 'look', arguments: {}, dispatch_id: second.dispatch_id }));
  for (const { frame } of [first, second]) pair.send('dispatch_result', { result: 'done' }, frame);
  for (const { id } of [first, second]) await client.untilState(id, 'completed');
  const trace = await traceWith(callersTrace('e'), 'execute_tool look');
  const parents = new Map(trace.spans.map((span) => [span.span_id, span]));
  const ancestorsOf = (name: string): string[] => {
    let { parent_span_id } = find(trace, name);
    const names = [];
    for (let span = parents.get(parent_span_id ?? ''); span; span = parents.get(parent_span_id ?? '')) {
      names.push(span.attributes['fleet.message.id'] ?? span.name);
      ({ parent_span_id } = span);
    }
    return names as string[];
  };
  expect(ancestorsOf('policy')).toEqual(['execute_tool look', 'invoke_agent pair', 'dispatch', second.id]);
  const decisions = async ({ id }: { id: string }) =>
    (await client.ok('/telemetry/get_events', { message_id: id, category: 'policy' }, GetEventsResponse)).events;
  expect(await decisions(first)).toEqual([]);
  expect(await decisions(second)).toMatchObject([{ event_type: 'policy.audited', event: { tool: 'look' } }]);
});

test('a quick message begins a trace of its own, and one that fails has the status error', async () => {
  const { id } = await client.send('hello', { metadata: { agent_type: 'echo' } });
  const traceId = await traceOfMessage(id);
  const trace = await traceOf(traceId);
  expect(withoutWait(trace)).toEqual([
    'message/send < null',
    'admission < message/send',
    'dispatch < message/send',
    'invoke_agent echo < dispatch',
  ]);
  const { spans: _, ...summary } = trace;
  expect(await list({ session_id: trace.session_id })).toEqual([summary]);
  const failed = await client.send('hello', { metadata: { agent_type: 'nobody' } });
  const other = await traceOf(await traceOfMessage(failed.id));
  expect(other).toMatchObject({ status: 'error', root_agent: 'nobody' });
  expect(other.spans[0]).toMatchObject({ status: 'error', attributes: { 'error.type': 'TARGET_UNAVAILABLE' } });
  expect(await listed({ status: 'error', session_id: other.session_id })).toEqual([other.trace_id]);
  expect(await listed({ status: 'ok', session_id: other.session_id })).toEqual([]);
});

test('a webhook and a plan that a result proposes continue the trace of the message', async () => {
  const to = await receiver();
  const about = { event: 'message.completed', filters: {} };
  const rule = { name: 'ends', condition: about, notifications: [{ type: 'webhook', config: { url: to.url } }] };
  await client.ok('/policies/new_alert', rule, AlertRule);
  const planner: Behaviour = (dispatch) =>
    dispatch.result({ plan_proposal: { description: 'later', steps: [step('only', 'echo', 'one')] } });
  await joinAgent(shared.platform, { instanceId: 'planner-1', agentType: 'planner' }, planner);
  const { id } = await client.send('plan it', { metadata: { agent_type: 'planner' } });
  const traceId = await traceOfMessage(id);
  const notice = () =>
    to.arrived.find(({ body }) => (body as { event: { message_id: string } }).event.message_id === id);
  expect((await until(notice)).headers.traceparent).toBe(`00-${traceId}-${spanIdOf(uuidOf(id))}-01`);
  const trace = await traceOf(traceId);
  expect(shape(trace).slice(-2)).toEqual([
    'invoke_workflow plan < invoke_agent planner',
    'approval_wait < invoke_workflow plan',
  ]);
  expect(await listed({ has_plan: true, session_id: trace.session_id })).toEqual([traceId]);
  const [summary] = await list({ has_plan: true, session_id: trace.session_id, status: 'ok' });
  expect(summary).toMatchObject({ root_agent: 'planner', ended_at: null });
  const planId = find(trace, 'invoke_workflow plan').attributes['fleet.plan.id'];
  await client.ok('/plans/reject', { plan_id: planId }, PlanResponse);
  const rejected = find(await traceOf(traceId), 'invoke_workflow plan');
  expect(rejected).toMatchObject({ status: 'unset', end: expect.any(String) });
});

test('messages of one caller belong to one trace, which pages list once', async () => {
  const traceId = callersTrace('c');
  const contextId = await newSession(client);
  for (const text of ['one', 'two', 'three']) {
    await client.untilState(await sendIn(traceId, text, { contextId }, { agent_type: 'echo' }), 'completed');
  }
  const trace = await traceOf(traceId);
  expect(trace.spans.filter(({ name }) => name === 'message/send')).toHaveLength(3);
  const alone = await client.send('four', { contextId, metadata: { agent_type: 'echo' } });
  const query = { session_id: contextId, page_size: 1 };
  const pages = [1, 2, 3].map((page) => listed({ ...query, page }));
  expect(await Promise.all(pages)).toEqual([[await traceOfMessage(alone.id)], [traceId], []]);
  expect((await client.ok('/telemetry/get_traces', query, TracesResponse)).count).toBe(2);
});

test('a plan shows its steps, and their messages below them', async () => {
  const plan = await createPlan(client, [
    step('first', 'echo', 'one'),
    step('second', 'echo', 'after {{steps.first.output}}', { depends_on: ['first'] }),
  ]);
  const { session_id } = await untilPlan(client, plan.plan_id, 'completed');
  const [summary, ...others] = await list({ session_id, has_plan: true, status: 'ok' });
  expect(others).toEqual([]);
  const trace = await traceOf(summary?.trace_id ?? '');
  const ofMessage = ['admission < message/send', 'dispatch < message/send', 'invoke_agent echo < dispatch'];
  const ofStep = ['plan_step < invoke_workflow plan', 'message/send < plan_step', ...ofMessage];
  const seen = withoutWait(trace);
  expect(seen.toSorted()).toEqual(['invoke_workflow plan < null', ...ofStep, ...ofStep].toSorted());
  expect(seen[0]).toBe('invoke_workflow plan < null');
  const steps = trace.spans.filter(({ name }) => name === 'plan_step');
  expect(steps.map(({ attributes }) => attributes['fleet.plan.step.id'])).toEqual(['first', 'second']);
  expect(await listed({ session_id })).toEqual([trace.trace_id]);
  expect(await listed({ session_id, has_plan: false })).toEqual([]);
  expect(await client.failure('/telemetry/get_traces', { trace_id: 'f'.repeat(32) })).toBe('404 NOT_FOUND');
});

test('the SDK lists traces and reads one', async () => {
  const { telemetry } = fleetClient(shared.platform);
  const list = await telemetry.getTraces({ status: 'ok', pageSize: 1 });
  const [first] = 'traces' in list ? list.traces : [];
  const one = await telemetry.getTraces({ traceId: first?.traceId ?? '' });
  expect(one).toMatchObject({ trace: { ...first, spans: expect.any(Array) } });
});

/** Tool calls of a message, more than its trace has. */
const MANY_CALLS = `
  INSERT INTO trace_spans (tenant_id, message_id, span_id, parent_span_id, name, kind, started_at, ended_at, attributes)
  SELECT tenant_id, message_id, lpad(n::text, 16, '0'), 'none', 'execute_tool t', 'internal', created_at, created_at, '{}'
    FROM messages, generate_series(1, $2::int) n WHERE message_id = $1`;

test('a trace with more spans than it may have says so, and so does its message', async () => {
  const contextId = await newSession(client);
  const { id } = await client.send('much', { contextId, metadata: { agent_type: 'echo' } });
  const traceId = await traceOfMessage(id);
  const few = await traceOf(traceId);
  expect(few.truncated).toBeUndefined();
  await shared.database.query(MANY_CALLS, [id, LIMITS.spansPerKind + 1]);
  const many = await traceOf(traceId);
  const { spans, ...summary } = many;
  const span_count = few.span_count + LIMITS.spansPerKind;
  expect(summary).toEqual({ ...few, spans: undefined, truncated: true, span_count });
  expect(spans).toHaveLength(many.span_count);
  expect(spans[0]?.attributes).toMatchObject({ 'fleet.message.id': id, 'fleet.trace.truncated': true });
  expect(await list({ session_id: contextId })).toEqual([summary]);
  await shared.database.query('DELETE FROM trace_spans WHERE message_id = $1', [id]);
});

/** A span that cannot be read. */
const UNREADABLE = `
  INSERT INTO trace_spans (tenant_id, message_id, span_id, parent_span_id, name, kind, started_at, ended_at, attributes)
  SELECT tenant_id, message_id, 'bad', 'none', 'execute_tool t', 'internal', 'infinity', 'infinity', '{}' FROM messages WHERE message_id = $1`;

test('a collector that was away gets every span once, but for those that it refuses and a message that cannot be read', async () => {
  await until(() => collector.refused > 1, { what: 'tries of the exporter' });
  expect(collector.spans).toEqual([]);
  const unreadable = await client.send('never seen', { metadata: { agent_type: 'echo' } });
  await shared.database.query(UNREADABLE, [unreadable.id]);
  const { id: large } = await client.send('much', { metadata: { agent_type: 'echo' } });
  await shared.database.query(MANY_CALLS, [large, 600]);
  const { id } = await client.send('the last', { metadata: { agent_type: 'echo' } });
  const last = await traceOf(await traceOfMessage(id));
  const isBad = ({ name, attributes }: CollectedSpan) =>
    name === 'message/send' && attributes.some(({ value }) => value.stringValue === 'TARGET_UNAVAILABLE');
  collector.comeBack({ spansMax: 40, spansInTime: 260, isBad });
  const lastId = last.spans[0]?.span_id;
  const isThere = () => collector.spans.some(({ spanId }) => spanId === lastId);
  await until(isThere, { what: 'the last message', timeoutMs: 60_000 });
  const summaries = await list({ page_size: 100 }); // of the one that cannot be read too: its spans are only counted
  const unread = await traceOfMessage(unreadable.id);
  expect(summaries.map(({ trace_id }) => trace_id)).toContain(unread);
  await shared.database.query("DELETE FROM trace_spans WHERE span_id = 'bad'");
  const traces = await Promise.all(summaries.map(({ trace_id }) => traceOf(trace_id)));
  const withoutSpans = traces.map(({ spans: _, ...summary }) => summary);
  expect(withoutSpans).toEqual(
    summaries.map((one) => (one.trace_id === unread ? { ...one, span_count: one.span_count - 1 } : one)),
  );
  const spans = traces.flatMap((trace) => trace.spans.map((span) => ({ ...span, trace_id: trace.trace_id })));
  const isExported = ({ trace_id, attributes }: (typeof spans)[number]) =>
    trace_id !== unread && attributes['error.type'] !== 'TARGET_UNAVAILABLE';
  const keys = collector.spans.map(({ traceId, spanId }) => `${traceId} ${spanId}`);
  const expected = spans.filter(isExported).map(({ trace_id, span_id }) => `${trace_id} ${span_id}`);
  expect(keys.toSorted()).toEqual(expected.toSorted());
  expect(spans.filter((span) => !isExported(span)).map(({ name }) => name)).toContain('message/send');
  const [request] = collector.requests;
  const headers = { 'api-key': 'a secret' };
  expect(request).toMatchObject({ path: '/v1/traces', headers, services: ['fleet-under-test'] });
  const first = spans.find(({ span_id }) => span_id === lastId);
  const sent = collector.spans.find(({ spanId }) => spanId === lastId);
  expect(sent).toMatchObject({
    name: 'message/send',
    kind: 2,
    status: { code: 1 },
    startTimeUnixNano: `${Date.parse(first?.start ?? '')}000000`,
    endTimeUnixNano: `${Date.parse(first?.end ?? '')}000000`,
  });
  expect(sent?.attributes).toContainEqual({ key: 'fleet.message.id', value: { stringValue: id } });
}, 120_000);

test('a span that is written long after its message was exported follows by itself, once, below its parent', async () => {
  const traceId = callersTrace('d');
  const exported = (name: string) =>
    collector.spans.filter((span) => span.traceId === traceId && span.name.startsWith(name));
  // As long as this holds the table, whoever writes spans waits, as a process does that is paused or has no database.
  const holder = await connect(shared.database.url);
  await holder.query('BEGIN; LOCK TABLE public.trace_spans IN SHARE MODE');
  const looker = await joinAgent(shared.platform, { instanceId: 'looker-1', agentType: 'looker', tools: ['look'] });
  const arrives = looker.nextOfType('dispatch');
  const id = await sendIn(traceId, 'look', {}, { agent_type: 'looker' });
  const dispatch = await arrives;
  const call = callTool(looker, { tool: 'look', arguments: {}, dispatch_id: dispatch.payload.dispatch_id });
  const taken = await take(looker, 'look');
  taken.result({ ok: true, result: 'seen' });
  expect(await resultOf(looker, call)).toMatchObject({ ok: true });
  looker.send('dispatch_result', { result: 'looked' }, dispatch.id);
  await client.untilState(id, 'completed');
  await until(() => exported('message/send').length > 0, { what: 'the export of the message' });
  expect(exported('execute_tool')).toEqual([]);
  await holder.query('COMMIT');
  await until(() => exported('execute_tool').length > 0, { what: 'the export of the span' });
  // Another message is exported after it, and neither is exported again.
  const { id: next } = await client.send('next', { metadata: { agent_type: 'echo' } });
  const nextTrace = await traceOfMessage(next);
  await until(() => collector.spans.some((span) => span.traceId === nextTrace), { what: 'the next message' });
  const ids = (await traceOf(traceId)).spans.map(({ span_id }) => span_id);
  const once = exported('').map(({ spanId }) => spanId);
  expect(once.toSorted()).toEqual(ids.toSorted());
  expect(exported('execute_tool')[0]?.parentSpanId).toBe(exported('invoke_agent')[0]?.spanId);
}, 120_000);
