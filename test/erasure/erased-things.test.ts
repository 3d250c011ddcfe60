import { expect, test } from 'vitest';
import { SessionInitResponse } from '../../contracts/api/sessions.js';
import { deliveryWorkflowId } from '../../contracts/workflows.js';
import { traceparentOf, uuidOf } from '../../runtime/ids.js';
import { answerMessage, COMPLETED, joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { textMessage } from '../setup/core.js';
import { stepAndTake } from '../setup/take.js';
import { until } from '../setup/until.js';
import { erasing } from './eraser-fixture.js';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');
const { client, order, finish } = await erasing(api);
const asAgent = await api.tokenAs(await api.credentialOf(api.tenantId, ['full']), 'forwarder');

const initFor = async (user_id: string) =>
  (await api.client.ok('/sessions/init', { user_id, agent_type: 'worker' }, SessionInitResponse)).session_id;

/** What an agent sends on for a dispatch of a message: in its trace, in a context of its own. */
async function forward(traceId: string, text: string, token = asAgent): Promise<{ id: string; contextId: string }> {
  const params = { message: textMessage(text), configuration: { blocking: false } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params });
  const traceparent = traceparentOf(traceId, crypto.randomUUID());
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, traceparent };
  const answer = await api.client.raw('/send', body, headers);
  return (answer.body as { result: { id: string; contextId: string } }).result;
}

async function sentBy(user: string) {
  const session = await initFor(user);
  const { id } = await api.client.send(`from ${user}`, { contextId: session, blocking: false });
  return { id, session, traceId: uuidOf(id).replaceAll('-', '') };
}

const isThere = async (id: string) =>
  (await api.database.query('SELECT 1 FROM messages WHERE message_id = $1', [id])).length === 1;

/** The workflow of a canceled message does its part. */
const settle = (id: string) => () => stepAndTake(api.core, { tenant_id: api.tenantId, message_id: id });

test.each(['messages', 'sessions'] as const)(
  'what agents sent on of a user goes with his %s, at work or over, and what they sent for others stays',
  async (kind) => {
    const [ada, bob] = [await sentBy(`ada-${kind}`), await sentBy(`bob-${kind}`)];
    const over = await forward(ada.traceId, 'about ada');
    await answerMessage(api, over.id, COMPLETED);
    const atWork = await forward(ada.traceId, 'more about ada');
    const ofBob = await forward(bob.traceId, 'about bob');
    for (const { id } of [ada, bob]) await answerMessage(api, id, COMPLETED);
    const id = await order(kind, { user_id: `ada-${kind}` });
    expect(await finish(id, settle(atWork.id))).toMatchObject({ messages: 3 });
    for (const gone of [ada.id, over.id, atWork.id]) expect(await isThere(gone)).toBe(false);
    for (const kept of [bob.id, ofBob.id]) expect(await isThere(kept)).toBe(true);
  },
);

test('in a trace of several users nothing is taken for granted', async () => {
  const ada = await sentBy('ada-shared');
  // The caller, which is no agent, sends for another user in the same trace.
  const callers = await api.tokenAs(await api.credentialOf(api.tenantId, ['full']));
  const other = await forward(ada.traceId, 'about bob', callers);
  const sentOn = await forward(ada.traceId, 'about one of them');
  await answerMessage(api, ada.id, COMPLETED);
  expect(await finish(await order('messages', { user_id: 'ada-shared' }))).toMatchObject({ messages: 1 });
  expect([await isThere(ada.id), await isThere(other.id), await isThere(sentOn.id)]).toEqual([false, true, true]);
});

test('the workflows of alerts about a message go, those that were started again too', async () => {
  const { id } = await api.client.send('alerting', { blocking: false });
  await answerMessage(api, id, COMPLETED);
  const [event] = await api.database.query<{ event_id: string; session_id: string }>(
    'SELECT event_id, session_id FROM events WHERE message_id = $1 LIMIT 1',
    [id],
  );
  const { event_id = '', session_id = '' } = event ?? {};
  const ofRule = { delivery_id: 'dlv_1', rule_id: 'rul_1', channel_id: 'chn_1' };
  const of = { tenant_id: api.tenantId, session_id, event_type: '', event_id, ...ofRule };
  await api.database.query(
    `INSERT INTO deliveries (tenant_id, delivery_id, event_id, rule_id, channel_id, event_type, session_id, url, receiver, body, status,
       max_attempts) VALUES ($1, $2, $3, $4, $5, '', $6, '', '', '', 'delivered', 1)`,
    [api.tenantId, 'dlv_1', event_id, of.rule_id, of.channel_id, session_id],
  );
  const ids = [1, 2].map((starts) => deliveryWorkflowId(of, starts));
  for (const workflowId of ids) await client.workflow.start('delivery', { workflowId, taskQueue: 'nobody', args: [] });
  const listed = async () => (await client.workflow.count(`WorkflowId STARTS_WITH "${ids[0]}"`)).count;
  await until(async () => (await listed()) === 2, { what: 'the workflows to be listed' });
  expect(await finish(await order('messages', { message_id: id }))).toMatchObject({ workflows: 2, deliveries: 1 });
  for (const workflowId of ids)
    await expect(client.workflow.getHandle(workflowId).describe()).rejects.toThrow(/not found/);
});
