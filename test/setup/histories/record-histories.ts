import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { AlertRule, type Notification } from '../../../contracts/api/alerts.js';
import { type Delivery, GetDeliveriesResponse } from '../../../contracts/api/deliveries.js';
import { IngestResponse, NewKnowledgeBaseResponse } from '../../../contracts/api/knowledge/knowledge.js';
import { MessageCancelResponse, ResolveResponse } from '../../../contracts/api/messages.js';
import { PlanResponse } from '../../../contracts/api/plans.js';
import { PolicyResponse } from '../../../contracts/api/policies/policies.js';
import { SessionInitResponse } from '../../../contracts/api/sessions.js';
import { type EventRecord, GetEventsResponse } from '../../../contracts/api/telemetry.js';
import {
  deliveryWorkflowId,
  ingestWorkflowId,
  messageWorkflowId,
  planWorkflowId,
  sessionWorkflowId,
} from '../../../contracts/workflows.js';
import { createPlan, untilStep } from '../../plans/plan-fixture.js';
import { dispatched, echo, silent } from '../agent.js';
import { joinAgent } from '../platform/fleet.js';
import { TestPlatform } from '../platform/platform-process.js';
import { until } from '../until.js';
import { historyToText } from './history-codec.js';

/** One course that a workflow can take: does it and gives the id of the workflow. `begun` resolves when there is a workflow of that id. */
type Course = (platform: TestPlatform, begun: (workflowId: string) => Promise<unknown>) => Promise<string>;

const join = (platform: TestPlatform, agentType: string, behaviour: typeof echo) =>
  joinAgent(platform, { instanceId: `${agentType}-1`, agentType }, behaviour);

const messageId = (platform: TestPlatform, message_id: string) =>
  messageWorkflowId({ tenant_id: platform.devJson().tenant_id, message_id });

/** A policy that asks a human. */
const ask = (platform: TestPlatform, policy: object) =>
  platform.client.ok(
    '/policies/create_policy',
    { name: 'ask', decision: 'require_approval', ...policy },
    PolicyResponse,
  );

/** The URL of a receiver that answers 500 to the first attempt. */
async function failsOnce(): Promise<string> {
  let attempts = 0;
  const receiver = createServer((request, response) => {
    attempts += 1;
    response.statusCode = attempts === 1 ? 500 : 200;
    request.resume().on('end', () => response.end());
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  receiver.unref();
  const { port } = receiver.address() as AddressInfo;
  return `http://127.0.0.1:${port}/`;
}

const COURSES: Record<string, Course> = {
  'message-completed': async (platform, begun) => {
    const agent = await join(platform, 'slow-one', silent);
    const task = await platform.client.send('hello', { metadata: { agent_type: 'slow-one' }, blocking: false });
    const frame = await agent.nextOfType('dispatch');
    await begun(messageId(platform, task.id));
    dispatched(agent, frame).result('done');
    return messageId(platform, task.id);
  },
  'message-input-resolved': async (platform) => {
    await join(platform, 'asker', (dispatch) => {
      if (dispatch.payload.params.metadata?.resolution) dispatch.result('done');
      else dispatch.ask({ kind: 'confirmation', title: 'Go on?' });
    });
    const task = await platform.client.send('ask', { metadata: { agent_type: 'asker' } });
    await platform.client.ok(`/messages/${task.id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
    return messageId(platform, task.id);
  },
  'message-tool-approved': async (platform) => {
    const match = { tools: ['fleet.get_agents'] };
    await ask(platform, { scope: 'tool', match, evaluator: { approval: { reminder_seconds: 1 } } });
    const agent = await join(platform, 'curious', async ({ payload, result }) => {
      agent.send('tool_call', { tool: 'fleet.get_agents', arguments: {}, dispatch_id: payload.dispatch_id });
      await agent.next((frame) => frame.type === 'tool_result' && frame.payload.ok === true);
      result('seen');
    });
    const task = await platform.client.send('look', { metadata: { agent_type: 'curious' } });
    const written = { type: 'policy.approval_required', message_id: task.id };
    await until(
      async () => (await platform.client.ok('/telemetry/get_events', written, GetEventsResponse)).events.length > 1,
      { what: 'the reminder' },
    );
    await platform.client.ok(`/messages/${task.id}/resolve`, { resolution: 'approved' }, ResolveResponse);
    return messageId(platform, task.id);
  },
  'message-approval-expired': async (platform) => {
    await join(platform, 'guarded', echo);
    const match = { agent_types: ['guarded'] };
    await ask(platform, { scope: 'admission', match, evaluator: { approval: { timeout_seconds: 2 } } });
    const task = await platform.client.send('hello', { metadata: { agent_type: 'guarded' } });
    return messageId(platform, task.id);
  },
  'message-canceled': async (platform, begun) => {
    const agent = await join(platform, 'silent', silent);
    const task = await platform.client.send('wait', { metadata: { agent_type: 'silent' }, blocking: false });
    await begun(messageId(platform, task.id));
    await platform.client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
    await agent.nextOfType('error');
    return messageId(platform, task.id);
  },
  'push-notifications-retried': async (platform) => {
    const url = await failsOnce();
    await join(platform, 'told', echo);
    const task = await platform.client.send('tell', {
      metadata: { agent_type: 'told' },
      pushNotificationConfig: { id: 'a', url },
    });
    const { deliveries } = await until(
      async () => {
        const found = await platform.client.ok('/webhooks/get_deliveries', { task_id: task.id }, GetDeliveriesResponse);
        return found.deliveries.length > 1 ? found : undefined;
      },
      { what: 'the notifications of both states' },
    );
    const { tenant_id } = platform.devJson();
    const first = deliveries.at(-1) as Delivery;
    const of = { tenant_id, session_id: '', message_id: task.id, config_id: 'a' };
    return deliveryWorkflowId({ ...of, delivery_id: first.delivery_id, event_type: first.event_type }, 1);
  },
  'rule-delivery-retried': async (platform) => {
    const condition = { event: 'agent.registered', filters: { agent_type: 'alerted' } };
    const notifications = [{ type: 'webhook', config: { url: await failsOnce() } }];
    const rule = await platform.client.ok('/policies/new_alert', { name: 'a', condition, notifications }, AlertRule);
    await join(platform, 'alerted', echo);
    const written = { type: 'agent.registered', instance_id: 'alerted-1' };
    const { events } = await platform.client.ok('/telemetry/get_events', written, GetEventsResponse);
    const [event] = events as [EventRecord];
    const [channel] = rule.notifications as [Notification];
    const { rule_id } = rule;
    const { deliveries } = await until(
      async () => {
        const found = await platform.client.ok('/webhooks/get_deliveries', { rule_id }, GetDeliveriesResponse);
        return found.deliveries.length > 0 ? found : undefined;
      },
      { what: 'the delivery' },
    );
    const [{ delivery_id }] = deliveries as [Delivery];
    return deliveryWorkflowId({ ...event, rule_id, delivery_id, channel_id: channel.channel_id }, 1);
  },
  'ingest-completed': async (platform) => {
    const { tenant_id } = platform.devJson();
    await platform.client.ok('/knowledge_base/new', { namespace: 'base' }, NewKnowledgeBaseResponse);
    // More than one slice.
    const documents = Array.from({ length: 80 }, (_, at) => ({ source_id: `source-${at}`, content: `Text ${at}.` }));
    const body = { namespace: 'base', documents, wait: false };
    const { job_id } = await platform.client.ok('/knowledge_base/ingest', body, IngestResponse);
    return ingestWorkflowId({ tenant_id, job_id });
  },
  'plan-completed': async (platform) => {
    let calls = 0;
    await join(platform, 'unsteady', (dispatch) => {
      calls += 1;
      if (calls === 1) dispatch.error('HANDLER_ERROR', 'not yet');
      else dispatch.result(`done: ${dispatch.text}`);
    });
    const steps = [
      { step_id: 'a', description: 'first', agent_type: 'unsteady', message: 'one', max_attempts: 2 },
      {
        step_id: 'b',
        description: 'second',
        agent_type: 'unsteady',
        message: '{{steps.a.output}}',
        requires_approval: true,
      },
    ];
    const plan = await createPlan(platform.client, steps, { auto_approve: false });
    await platform.client.ok('/plans/approve', { plan_id: plan.plan_id }, PlanResponse);
    const { steps: found } = await untilStep(platform.client, plan.plan_id, 'b', 'input-required');
    await platform.client.ok(`/messages/${found[1]?.message_id}/resolve`, { resolution: 'approved' }, ResolveResponse);
    return planWorkflowId(plan);
  },
  'plan-canceled': async (platform) => {
    const agent = await join(platform, 'slow', silent);
    const plan = await createPlan(platform.client, [
      { step_id: 'a', description: 'first', agent_type: 'slow', message: 'one', timeout_seconds: 600 },
      { step_id: 'b', description: 'second', agent_type: 'slow', message: 'two', depends_on: ['a'] },
    ]);
    await agent.nextOfType('dispatch');
    await platform.client.ok('/plans/cancel', { plan_id: plan.plan_id }, PlanResponse);
    return planWorkflowId(plan);
  },
  'session-expired': async (platform) => {
    const body = { idle_timeout_seconds: 1 };
    const { session_id } = await platform.client.ok('/sessions/init', body, SessionInitResponse);
    return sessionWorkflowId({ tenant_id: platform.devJson().tenant_id, session_id });
  },
};

/**
 * Runs courses on a platform of their own and writes the finished workflows' histories to the folder.
 * @param names of the courses; all where there is none
 */
export async function recordHistories(folder: string, names: readonly string[]): Promise<void> {
  const dataDir = mkdtempSync(joinPath(tmpdir(), 'fleet-record-'));
  chmodSync(dataDir, 0o755);
  const platform = new TestPlatform({ dataDir, env: { WATCH_AFTER_MS: '0' } }); // else what is over soon has no workflow
  try {
    await platform.start();
    const connection = await Connection.connect({ address: platform.devJson().temporal_address });
    const client = new Client({ connection });
    const begun = (id: string) => until(() => client.workflow.getHandle(id).describe(), { what: `the workflow ${id}` });
    for (const [name, course] of Object.entries(COURSES)) {
      if (names.length > 0 && !names.includes(name)) continue;
      const handle = client.workflow.getHandle(await course(platform, begun));
      await until(() => handle.result().then(() => true), { what: `the end of ${handle.workflowId}` }); // it may not have started yet
      writeFileSync(joinPath(folder, `${name}.json`), historyToText(await handle.fetchHistory()));
      process.stderr.write(`${name}: recorded\n`);
    }
    await connection.close();
  } finally {
    await platform.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
