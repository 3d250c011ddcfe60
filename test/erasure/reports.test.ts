import { expect, test } from 'vitest';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { messageWorkflowId } from '../../contracts/workflows.js';
import { RedisBus } from '../../messages/stream/redis-bus.js';
import { answerMessage, COMPLETED, joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { redisServer } from '../messages/bus/redis-server.js';
import { cleanUp } from '../setup/clean-up.js';
import { until } from '../setup/until.js';
import { erasing, untilDeath } from './eraser-fixture.js';

const redis = await redisServer();
const api = await serveApi();
await joinOnRecord(api, 'worker-1');
const { client, deps, order, turn, report, alertsRead } = await erasing(api);
const bus = new RedisBus({ url: redis.url, log: api.core.log });
cleanUp(() => bus.close());

/** A message of a session that is over, with a workflow, and with output in Redis. */
async function sentTo(contextId: string): Promise<string> {
  const { id: message_id } = await api.client.send('hello', { contextId, blocking: false });
  await answerMessage(api, message_id, COMPLETED);
  const workflowId = messageWorkflowId({ tenant_id: api.tenantId, message_id });
  await client.workflow.start('message', { workflowId, taskQueue: 'nobody', args: [] });
  bus.publish(api.tenantId, message_id, { kind: 'status_text', text: 'at work' });
  await until(async () => (await bus.keysOf(api.tenantId, [message_id])).length === 1, { what: 'the output in Redis' });
  return message_id;
}

test.each(['messages', 'sessions'] as const)(
  'an erasure of %s that is killed at any step, before or after it, ends with the exact report of all, and others stay',
  async (kind) => {
    const user_id = `killed-${kind}`;
    const sent: string[] = [];
    for (let sessions = 0; sessions < 2; sessions += 1) {
      const opened = await api.client.ok('/sessions/init', { user_id, agent_type: 'worker' }, SessionInitResponse);
      for (let messages = 0; messages < 2; messages += 1) sent.push(await sentTo(opened.session_id));
    }
    const other = await api.client.send('of nobody', { blocking: false });
    await answerMessage(api, other.id, COMPLETED);
    const id = await order(kind, { user_id });
    let deaths = 0;
    for (let life = 0; (await report(id)).finished_at === null; life += 1) {
      expect(life).toBeLessThan(300);
      await turn(untilDeath({ ...deps, bus }, 1 + (life % 23), life % 2 === 0)).catch((error: Error) => {
        expect(error.message).toBe('killed');
        deaths += 1;
      });
      await alertsRead();
    }
    expect(deaths).toBeGreaterThan(10);
    const { removed } = await report(id);
    expect(removed).toMatchObject({ messages: 4, dispatches: 4, workflows: 4, redis_keys: 4 });
    if (kind === 'sessions') expect(removed).toMatchObject({ sessions: 2 });
    expect(await bus.keysOf(api.tenantId, sent)).toEqual([]);
    for (const message_id of sent) {
      for (const table of ['messages', 'dispatches', 'events'])
        expect(await api.database.query(`SELECT 1 FROM ${table} WHERE message_id = $1`, [message_id])).toEqual([]);
      const workflow = client.workflow.getHandle(messageWorkflowId({ tenant_id: api.tenantId, message_id }));
      await expect(workflow.describe()).rejects.toThrow(/not found/);
    }
    expect((await api.client.message(other.id)).state).toBe('completed');
    const noted = 'SELECT removing_workflows || removing_keys AS names FROM erasures WHERE erasure_id = $1';
    expect(await api.database.query(noted, [id])).toEqual([{ names: [] }]);
  },
);
