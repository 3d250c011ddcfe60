import { describe, expect, test } from 'vitest';
import { MessageCancelResponse } from '../../contracts/api/messages.js';
import { until } from '../setup/until.js';
import { fleetOn, to } from './fixture.js';

const { platform, client, temporal, tenant_id, join, workflowOf, detailsOf } = await fleetOn();

/** The lines of the log that tell of a message's end. */
const endsInLog = (messageId: string) =>
  platform
    .log()
    .split('\n')
    .filter((line) => line.includes(messageId) && /"message (failed|canceled)"/.test(line))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** The ids of the workflows that the Temporal UI lists for a filter, once there are any. */
const listed = (query: string) =>
  until(async () => {
    const ids: string[] = [];
    for await (const info of temporal.workflow.list({ query })) ids.push(info.workflowId);
    return ids.length > 0 ? ids : undefined;
  });

test('the Temporal UI tells tenant, session, agent and state of a message, and what is waited for', async () => {
  await join('seen', (dispatch) => dispatch.ask({ kind: 'confirmation', title: 'Look at me' }));
  const task = await client.send('show', to('seen'));
  const of = `FleetTenant = "${tenant_id}" AND FleetSession = "${task.contextId}" AND FleetAgentType = "seen"`;
  expect(await listed(`${of} AND FleetState = "input-required"`)).toEqual([`message:${tenant_id}:${task.id}`]);
  const { userMetadata } = (await workflowOf(task.id).describe()).raw.executionConfig ?? {};
  expect(Buffer.from(userMetadata?.summary?.data ?? '').toString()).toContain(`message ${task.id}`);
  expect(await until(() => detailsOf(task.id))).toMatch(/waits for a human/i);
  await client.ok('/messages/cancel', { message_id: task.id }, MessageCancelResponse);
});

describe('why a message failed', () => {
  test('is one line of the log with all ids, whoever ended it', async () => {
    const agent = await join('unlucky', (dispatch) => dispatch.error('HANDLER_ERROR', 'no luck'));
    const failed = await client.send('hello', to('unlucky'));
    const lines = await until(() => (endsInLog(failed.id).length > 0 ? endsInLog(failed.id) : undefined));
    const about = { tenant_id, session_id: failed.contextId, workflow_id: `message:${tenant_id}:${failed.id}` };
    const by = { agent_type: 'unlucky', instance_id: 'unlucky-1', dispatch_id: expect.stringMatching(/^dsp_/) };
    expect(lines).toMatchObject([{ msg: 'message failed', ...about, ...by, code: 'HANDLER_ERROR' }]);
    agent.send('heartbeat', { status: 'busy' });
    const canceled = await client.send('hello', { ...to('unlucky'), blocking: false });
    await client.post('/messages/cancel', { message_id: canceled.id });
    await until(() => endsInLog(canceled.id).length > 0);
    expect([endsInLog(failed.id).length, endsInLog(canceled.id).length]).toEqual([1, 1]);
  });

  test('stands in the Temporal UI: result, current details and the filter FleetError', async () => {
    await join('late');
    // Longer than a message has no workflow.
    const task = await client.send('hello', to('late', { deadline_ms: 4_000 }));
    expect(task.status.state).toBe('failed');
    // What agents and people wrote never reaches Temporal.
    expect(await workflowOf(task.id).result()).toEqual({ state: 'failed', error: { code: 'DEADLINE_EXCEEDED' } });
    expect(await detailsOf(task.id)).toMatch(/failed.*DEADLINE_EXCEEDED/);
    const query = `FleetError = "DEADLINE_EXCEEDED" AND FleetTenant = "${tenant_id}" AND FleetAgentType = "late"`;
    expect(await listed(query)).toEqual([`message:${tenant_id}:${task.id}`]);
    expect(endsInLog(task.id)).toHaveLength(1);
  });
});
