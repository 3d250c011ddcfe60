import { Client, type Connection } from '@temporalio/client';
import { beforeAll, describe, expect, test } from 'vitest';
import { ResolveResponse } from '../../../contracts/api/messages.js';
import { SessionGetByIdResponse } from '../../../contracts/api/sessions.js';
import { sessionWorkflowId } from '../../../contracts/workflows.js';
import { ruleFor, webhook } from '../../alerts/alert-fixture.js';
import { createPlan, newSession, step, untilPlan, untilStep } from '../../plans/plan-fixture.js';
import type { RawAgent } from '../../setup/agent.js';
import { contradictions } from '../../setup/histories/record-checker.js';
import { joinAgent, registerAgent } from '../../setup/platform/fleet.js';
import { createNamespace, startPlatform } from '../../setup/platform/platform.js';
import type { TestPlatform } from '../../setup/platform/platform-process.js';
import { emptyCluster, runDocumented } from '../../setup/postgres-dump.js';
import { receiver } from '../../setup/receiver.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';
import { byText, to } from '../../system/fixture.js';
import { EventFollower } from '../../telemetry/event-follower.js';

/** Makes the restored rows those of an older backup, so that what a sweeper does after a minute is due. */
const AS_OF_AN_HOUR_AGO = `
  UPDATE mesh_nodes SET renewed_at = renewed_at - interval '1 hour', started_at = started_at - interval '1 hour';
  UPDATE running_messages SET wake_requested_at = wake_requested_at - interval '1 hour', supervised_at = supervised_at - interval '1 hour';
  UPDATE sessions SET supervised_at = supervised_at - interval '1 hour';
  UPDATE plans SET check_at = check_at - interval '1 hour'`;

const cluster = await emptyCluster('new-cluster');
const hook = await receiver();
const shared = await startPlatform({ QUEUE_WAIT_MS: '600000' });
const { client } = shared.platform;
const connection = shared.temporal.connection as Connection;

/** What the platform had acknowledged when its database was dumped. */
async function acknowledged() {
  await joinAgent(shared.platform, { instanceId: 'worker-1', agentType: 'worker', maxConcurrentSessions: 0 }, byText());
  await registerAgent(client, { instanceId: 'away-1', agentType: 'away' });
  const token = await client.token();
  const events = await EventFollower.open(shared.platform.baseUrl, token);
  const ended = await client.send('answer', { ...to('worker'), messageId: 'ended' });
  const [asking, askedToo, held, queued] = await Promise.all([
    client.send('ask', to('worker')),
    client.send('ask', to('worker')),
    client.send('hold', { ...to('worker'), blocking: false }),
    client.send('answer', { ...to('away'), blocking: false }),
  ]);
  const sessionId = await newSession(client);
  const steps = [
    step('a', 'worker', 'answer'),
    step('b', 'worker', 'answer', { depends_on: ['a'], requires_approval: true }),
  ];
  const plan = await createPlan(client, steps);
  const waiting = await untilStep(client, plan.plan_id, 'b', 'input-required');
  const stepMessage = waiting.steps.find(({ step_id }) => step_id === 'b')?.message_id;
  const { happen } = await ruleFor(client, [webhook(hook.url)]);
  // The relay passes over a cursor that somebody has locked: what happens now is not read before the dump.
  const relay = await RowLock.on(shared.database.url, 'SELECT 1 FROM event_cursors WHERE consumer = $1', ['alerts']);
  const unread = await happen();
  await until(() => events.records.some(({ event }) => 'instance_id' in event && event.instance_id === unread));
  await events.leave();
  const { ids } = events;
  return { token, ended, asking, askedToo, held, queued, sessionId, plan, stepMessage, unread, ids, relay };
}

const before = await acknowledged();
await runDocumented('pg_dump', { DATABASE_URL: shared.database.url });
const lost = await client.send('answer', { ...to('worker'), messageId: 'lost' });
await client.ok(`/messages/${before.askedToo.id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
await client.untilState(before.askedToo.id, 'completed');
await shared.platform.kill9();
await before.relay.release();
await cluster.run('postgres', 'CREATE DATABASE restored');
await runDocumented('pg_restore', { NEW_DATABASE_URL: cluster.urlOf('restored') });
await cluster.run('restored', AS_OF_AN_HOUR_AGO);
await cluster.run('postgres', 'CREATE DATABASE restored_too TEMPLATE restored');
await createNamespace(connection, `${shared.temporal.options.namespace}-new`);

describe.each([
  ['the same Temporal', 'restored', shared.temporal.options.namespace],
  ['an empty Temporal', 'restored_too', `${shared.temporal.options.namespace}-new`],
])('a dump that is restored into a new cluster, with %s', (_what, database, namespace) => {
  let restored: TestPlatform;
  let arrivedBefore: number;
  const agents: RawAgent[] = [];
  beforeAll(async () => {
    arrivedBefore = hook.arrived.length;
    const env = { DATABASE_URL: cluster.urlOf(database), TEMPORAL_NAMESPACE: namespace };
    restored = await shared.startPeer({ env });
    return () => {
      for (const agent of agents) agent.close();
      return restored.stop();
    };
  });

  test('finds what had ended, and goes on with what waits for an agent', async () => {
    const { client } = restored;
    expect((await client.send('answer', { ...to('worker'), messageId: 'ended' })).id).toBe(before.ended.id);
    expect(await client.failure('/messages/get_by_id', { message_id: lost.id })).toBe('404 NOT_FOUND');
    for (const agentType of ['worker', 'away']) {
      const agent = { instanceId: `${agentType}-1`, agentType, maxConcurrentSessions: 0 };
      agents.push(await joinAgent(restored, agent, byText()));
    }
    await client.untilState(before.queued.id, 'completed');
    const again = await client.send('answer', { ...to('worker'), messageId: 'lost' });
    expect([again.status.state, again.id]).toEqual(['completed', expect.not.stringMatching(lost.id)]);
  });

  test('goes on with approvals, plans and sessions', async () => {
    const { client } = restored;
    for (const { id } of [before.asking, before.askedToo]) {
      await client.ok(`/messages/${id}/resolve`, { resolution: 'confirmed' }, ResolveResponse);
      expect((await client.untilState(id, 'completed')).assistant_output).toBe('ask: confirmed');
    }
    await client.ok(`/messages/${before.stepMessage}/resolve`, { resolution: 'approved' }, ResolveResponse);
    await untilPlan(client, before.plan.plan_id, 'completed');
    const { session } = await client.ok(
      '/sessions/get_by_id',
      { session_id: before.sessionId },
      SessionGetByIdResponse,
    );
    expect(session.status).toBe('active');
    const answer = await client.send('answer', { ...to('worker'), contextId: before.sessionId });
    expect(answer.status.state).toBe('completed');
  });

  test('reads events on from every cursor, without a gap or a repeat', async () => {
    const { token, ids, unread } = before;
    const place = Math.floor(ids.length / 2);
    const resumed = await EventFollower.open(restored.baseUrl, token, { body: { last_event_id: ids[place] } });
    const after = ids.slice(place + 1);
    await resumed.has(after.length);
    expect(resumed.ids.slice(0, after.length)).toEqual(after);
    await restored.client.send('answer', to('worker'));
    await until(() => resumed.ids.length > after.length + 1);
    expect(new Set(resumed.ids).size).toBe(resumed.ids.length);
    await resumed.leave();
    await hook.untilArrived(arrivedBefore + 1);
    expect(JSON.stringify(hook.arrived.slice(arrivedBefore).map(({ body }) => body))).toContain(unread);
  });

  test('ends what an agent had, has the workflow of its session, and a record without a contradiction', async () => {
    const { tenant_id } = shared.platform.devJson();
    const id = sessionWorkflowId({ tenant_id, session_id: before.sessionId });
    const temporal = new Client({ connection, namespace });
    const running = async () => (await temporal.workflow.getHandle(id).describe()).status.name === 'RUNNING';
    await until(running, { what: `the workflow ${id}` });
    expect((await restored.client.untilState(before.held.id, 'failed')).error?.code).toBe('AGENT_DISCONNECTED');
    expect(await contradictions(cluster.reader(database))).toEqual([]);
  });
});
