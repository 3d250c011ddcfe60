import { expect, test } from 'vitest';
import { TraceResponse } from '../../contracts/api/telemetry.js';
import { traceFrom } from '../../runtime/ids.js';
import { callTool, resultOf, take } from '../mesh/tools/tool-fixture.js';
import { newSession, step, untilPlan } from '../plans/plan-fixture.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { startPlatform } from '../setup/platform/platform.js';
import { receiver } from '../setup/receiver.js';
import { until } from '../setup/until.js';
import { sendTraced, TestCollector } from './collector.js';

const collector = await TestCollector.start();
const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, FLEET_TRACE_SAMPLE_RATIO: '0.9' };
const { platform, database } = await startPlatform(settings);
const { client } = platform;
collector.comeBack({ spansMax: 10_000, spansInTime: 10_000, isBad: () => false });
await until(async () => (await database.query('SELECT 1 FROM trace_exports')).length > 0, { what: 'the exporter' });

const PARENT = 'b7ad6b7169203331';
const UNSAMPLED = 'd'.repeat(32);
/** Its last seven bytes are among the lowest tenth. */
const LEFT_OUT = `${'d'.repeat(18)}${'1'.repeat(14)}`;
const SAMPLED = '2'.repeat(32);

test.each([
  ['01', true],
  ['00', false],
  ['02', false], // of another flag of Level 2
  ['03', true],
])('the flags %s are read', (flags, sampled) => {
  const parsed = traceFrom(`00-${SAMPLED}-${PARENT}-${flags}`, '');
  expect(parsed).toEqual({ trace_id: SAMPLED, parent_span_id: PARENT, sampled });
});

test('a trace that its caller or FLEET_TRACE_SAMPLE_RATIO does not sample goes on as such, is not exported, and keeps no tool calls', async () => {
  const webhook = await receiver();
  const agent = await joinAgent(platform, { instanceId: 'caller-1', agentType: 'caller' });
  const tools = await joinAgent(platform, { instanceId: 'tool-1', agentType: 'tools', tools: ['look'] });
  for (const [traceId, flags] of [
    [UNSAMPLED, '00'],
    [LEFT_OUT, '01'],
    [SAMPLED, '01'],
  ]) {
    const trace = { traceparent: `00-${traceId}-${PARENT}-${flags}`, tracestate: 'vendor=opaque,other=1' };
    const configuration = { pushNotificationConfig: { url: webhook.url } };
    const id = await sendTraced(client, trace, { metadata: { agent_type: 'caller' }, configuration });
    const dispatch = await agent.nextOfType('dispatch');
    const { session_context, dispatch_id } = dispatch.payload as {
      dispatch_id: string;
      session_context: { propagation_headers: { traceparent: string; tracestate: string } };
    };
    const { traceparent, tracestate } = session_context.propagation_headers;
    expect({ traceparent, tracestate }).toEqual({
      traceparent: expect.stringMatching(new RegExp(`^00-${traceId}-[0-9a-f]{16}-${flags}$`)),
      tracestate: 'vendor=opaque,other=1',
    });
    const call = callTool(agent, { tool: 'look', arguments: {}, dispatch_id });
    (await take(tools, 'look')).result({ ok: true, result: 'seen' });
    await resultOf(agent, call);
    agent.send('dispatch_result', { result: 'done' }, dispatch.id);
    await client.untilState(id, 'completed');
    const push = await until(() => webhook.arrived.find(({ body }) => JSON.stringify(body).includes(id)));
    expect(push.headers.traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-${flags}$`));
  }
  // Exported in the order of their ends: the others would be there.
  await until(() => collector.spans.some(({ traceId, name }) => traceId === SAMPLED && name === 'execute_tool look'));
  expect(collector.spans.filter(({ traceId }) => traceId !== SAMPLED)).toEqual([]);
  const namesOf = async (trace_id: string) =>
    (await client.ok('/telemetry/get_traces', { trace_id }, TraceResponse)).trace.spans.map(({ name }) => name);
  expect(await namesOf(SAMPLED)).toContain('execute_tool look');
  for (const traceId of [UNSAMPLED, LEFT_OUT]) {
    const kept = await namesOf(traceId);
    expect(kept).toContain('invoke_agent caller');
    expect(kept).not.toContain('execute_tool look');
  }
});

test('the steps of a plan that is not sampled are not either', async () => {
  const seen: string[] = [];
  await joinAgent(platform, { instanceId: 'step-1', agentType: 'stepper' }, (dispatch) => {
    seen.push(dispatch.payload.session_context.propagation_headers.traceparent);
    dispatch.result('done');
  });
  const traceId = '3'.repeat(32);
  const headers = { ...(await client.headers()), traceparent: `00-${traceId}-${PARENT}-00` };
  const session_id = await newSession(client);
  const body = { session_id, description: 'quiet', steps: [step('only', 'stepper', 'one')], auto_approve: true };
  const { status, body: answer } = await client.raw('/plans/create', JSON.stringify(body), headers);
  expect(status).toBe(200);
  await untilPlan(client, (answer as { plan: { plan_id: string } }).plan.plan_id, 'completed');
  expect(seen).toEqual([expect.stringMatching(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))]);
});
