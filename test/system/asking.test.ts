import { beforeAll, describe, expect, test } from 'vitest';
import { Task } from '../../contracts/a2a/a2a.js';
import { HealthResponse } from '../../contracts/api/health.js';
import { MessageCancelResponse, MessagesPendingResponse, ResolveResponse } from '../../contracts/api/messages.js';
import type { dispatched, echo, RawAgent } from '../setup/agent.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { PATHS } from '../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../setup/platform/platform.js';
import { until } from '../setup/until.js';

let shared: SharedPlatform;
let client: ApiClient;

const join = (agentType: string, behaviour?: typeof echo): Promise<RawAgent> =>
  joinAgent(shared.platform, { instanceId: `${agentType}-1`, agentType }, behaviour);
const to = (agentType: string) => ({ agent_type: agentType });

describe.each(PATHS)('$way', ({ env }) => {
  beforeAll(async () => {
    shared = await startPlatform(env);
    client = shared.platform.client;
    return shared.dispose;
  });

  describe('asking a human', () => {
    const askOnce = (dispatch: ReturnType<typeof dispatched>) => {
      const { resolution } = (dispatch.payload.params.metadata ?? {}) as { resolution?: { resolution: unknown } };
      if (resolution) dispatch.result(`decided: ${JSON.stringify(resolution.resolution)}`);
      else dispatch.ask({ kind: 'confirmation', title: 'Really?', prompt: 'Delete everything?' });
    };

    test('what an agent asks is pending until it is resolved, once; the agent then goes on', async () => {
      await join('asking', askOnce);
      const task = await client.send('delete', { metadata: to('asking') });
      expect(task.status.state).toBe('input-required');
      const pending = await client.ok('/messages/pending', { session_id: task.contextId }, MessagesPendingResponse);
      expect(pending.messages.map((message) => message.message_id)).toEqual([task.id]);
      expect(pending.messages[0]?.input_request).toMatchObject({
        kind: 'confirmation',
        source: 'agent',
        title: 'Really?',
      });

      const path = `/messages/${task.id}/resolve`;
      const resolved = await client.ok(path, { resolution: 'confirmed' }, ResolveResponse);
      expect(resolved).toMatchObject({ message_id: task.id, resolution: 'confirmed' });
      expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('decided: "confirmed"');
      expect(await client.failure(path, { resolution: 'confirmed' })).toMatch(/^409 /);
    });

    test.each([
      ['no schema of a form', { type: 'banana' }],
      ['not flat', { type: 'object', properties: { a: { type: 'object', properties: {} } } }],
    ])('a form that is %s fails its message', async (what, schema) => {
      const type = what.replaceAll(' ', '-');
      await join(type, (dispatch) => dispatch.ask({ kind: 'form', title: 'Fill in', schema }));
      const task = await client.send('ask', { metadata: to(type) });
      expect(task.status.state).toBe('failed');
      const { error } = await client.message(task.id);
      expect(error).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining('form') });
    });

    test('of fifty answers at the same time one is taken', async () => {
      await join('contested', askOnce);
      const task = await client.send('who decides?', { metadata: to('contested') });
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => client.failure(`/messages/${task.id}/resolve`, { resolution: 'confirmed' })),
      );
      expect(answers.filter((answer) => answer === '200')).toHaveLength(1);
      expect(answers.filter((answer) => !/^(200|409 )/.test(answer))).toEqual([]);
      await client.untilState(task.id, 'completed');
    });

    test('a follow-up message with the taskId answers what the agent asked', async () => {
      await join('dialog', askOnce);
      const task = await client.send('start', { metadata: to('dialog') });
      const answer = await client.rpc('approve', { taskId: task.id, contextId: task.contextId });
      expect(Task.parse(answer.result).id).toBe(task.id);
      await client.untilState(task.id, 'completed');
    });
  });

  describe('what an operator sees', () => {
    test('health says that every part is there', async () => {
      const answer = await client.get('/health');
      expect(answer.status).toBe(200);
      expect(HealthResponse.parse(answer.body)).toMatchObject({
        status: 'ok',
        checks: { database: 'ok', temporal: 'ok', mesh: 'ok' },
      });
    });

    test('the Temporal UI tells tenant, session, agent and state of a message, and what is waited for', async () => {
      await join('seen', (dispatch) => dispatch.ask({ kind: 'confirmation', title: 'Look at me' }));
      const task = await client.send('show', { metadata: to('seen') });
      const { tenant_id } = shared.platform.devJson();
      const query = `FleetTenant = "${tenant_id}" AND FleetSession = "${task.contextId}" AND FleetAgentType = "seen" AND FleetState = "input-required"`;
      const found = await until(async () => {
        const ids: string[] = [];
        for await (const info of shared.temporal.workflow.list({ query })) ids.push(info.workflowId);
        return ids.find((id) => id === `message:${tenant_id}:${task.id}`);
      });
      const { userMetadata } = (await shared.temporal.workflow.getHandle(found).describe()).raw.executionConfig ?? {};
      expect(Buffer.from(userMetadata?.summary?.data ?? '').toString()).toContain(`message ${task.id}`);
      const details = await until(() => currentDetails(found));
      expect(details).toMatch(/waits for a human/i);
      await client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
    });

    async function currentDetails(workflowId: string): Promise<string | undefined> {
      const metadata = await shared.temporal.workflow
        .getHandle(workflowId)
        .query<{ currentDetails?: string }>('__temporal_workflow_metadata');
      return metadata.currentDetails;
    }
  });

  /** Last in this file: the agents above are gone with the platform that is killed here. */
  describe('a platform that is killed while a human is asked', () => {
    test('asks on after its next start, takes the answer and lets the agent go on', async () => {
      const agentType = 'patient';
      await join(agentType, (dispatch) => dispatch.ask({ kind: 'approval', title: 'Launch?' }));
      const task = await client.send('launch', { metadata: to(agentType) });
      expect(task.status.state).toBe('input-required');

      await shared.platform.kill9();
      await shared.platform.start();
      const pending = await client.ok('/messages/pending', {}, MessagesPendingResponse);
      expect(pending.messages.map((message) => message.message_id)).toContain(task.id);

      await join(agentType, (dispatch) =>
        dispatch.result(`launched ${dispatch.payload.params.metadata?.resolution !== undefined}`),
      );
      await client.ok(`/messages/${task.id}/resolve`, { resolution: 'approved' }, ResolveResponse);
      expect((await client.untilState(task.id, 'completed')).assistant_output).toBe('launched true');
    });
  });
});
