import { expect, test } from 'vitest';
import { SessionInitResponse } from '../../../contracts/api/sessions.js';
import { GetEventsResponse } from '../../../contracts/api/telemetry.js';
import { stepAndTake } from '../../setup/take.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();

/** The loads that `agent.capacity_changed` said of an instance, oldest first. */
async function loads(instanceId: string): Promise<unknown[]> {
  const query = { type: 'agent.capacity_changed', instance_id: instanceId };
  const { events } = await api.client.ok('/telemetry/get_events', query, GetEventsResponse.strict());
  return events.map(({ event }) => event.current_sessions).reverse();
}

async function sessionOn(instanceId: string): Promise<string> {
  await joinOnRecord(api, instanceId);
  return (await api.client.ok('/sessions/init', { instance_id: instanceId, reserve: true }, SessionInitResponse))
    .session_id;
}

const send = async (contextId: string) => (await api.client.send('hello', { contextId, blocking: false })).id;

test('a session that pauses while another message of it is at work changes no capacity', async () => {
  const session = await sessionOn('pauses-2');
  const [asking, working] = [await send(session), await send(session)];
  await stepAndTake(api.core, { tenant_id: api.tenantId, message_id: working });
  await answerMessage(api, asking, ASKS);
  expect(await loads('pauses-2')).toEqual([1]);
  await answerMessage(api, working, COMPLETED);
});
