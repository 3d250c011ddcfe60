import { expect, test } from 'vitest';
import { AlertRule } from '../../contracts/api/alerts.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { joinAgent } from '../setup/platform/fleet.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { type Arrived, receiver } from '../setup/receiver.js';
import { deliveriesOf, failureOf, untilDelivered, webhook } from './alert-fixture.js';

const ASKED = 'message.input_required';
const shared = await sharedPlatform();
const { client } = shared.platform;

test('the delivery carries a token that answers its request, once; no list, log, row or event has it', async () => {
  const to = await receiver();
  const asking = { name: 'asks', condition: { event: ASKED }, notifications: [webhook(to.url)] };
  const { rule_id } = await client.ok('/policies/new_alert', asking, AlertRule);
  await joinAgent(shared.platform, { instanceId: 'asks-1', agentType: 'asks' }, (dispatch) => {
    const { resolution } = (dispatch.payload.params.metadata ?? {}) as { resolution?: object };
    if (resolution) dispatch.result(JSON.stringify(resolution));
    else dispatch.ask({ kind: 'approval', title: 'Pay the invoice?' });
  });
  const { id, contextId: session_id } = await client.send('go', { metadata: { agent_type: 'asks' } });
  const [{ body }] = (await to.untilArrived(1)) as [Arrived];
  expect(body).toMatchObject({
    ...{ event_type: ASKED, type: 'approval_required', session_id },
    event: { message_id: id, session_id, kind: 'approval', source: 'agent', title: 'Pay the invoice?' },
    callback_token: expect.stringMatching(/^[\w-]{43}$/),
    resolve_url: `${shared.platform.devJson().base_url}/messages/${id}/resolve`,
  });
  const { callback_token: token, resolve_url } = body as { callback_token: string; resolve_url: string };
  // As an external system does: without an access token.
  const answer = () => {
    const given = JSON.stringify({ callback_token: token, resolution: 'approved' });
    return client.raw(new URL(resolve_url).pathname, given, { 'content-type': 'application/json' });
  };
  expect(await answer()).toMatchObject({ status: 200, body: { ok: true, message_id: id, resolution: 'approved' } });
  const message = await client.untilState(id, 'completed');
  expect(JSON.parse(message.assistant_output)).toMatchObject({ resolution: 'approved' });
  expect(failureOf(await answer())).toBe('409 ALREADY_RESOLVED');
  const { approvals } = await client.ok('/messages/get_approvals', { message_id: id }, GetApprovalsResponse);
  expect(approvals.map(({ principal }) => principal)).toEqual([{ type: 'callback', id: rule_id }]);

  await untilDelivered(client, rule_id);
  expect(JSON.stringify(await deliveriesOf(client, rule_id))).not.toMatch(/callback_token|resolve_url/);
  expect(JSON.stringify((await client.post('/telemetry/get_events', { session_id })).body)).not.toContain(token);
  expect(shared.platform.log()).not.toContain(token);
  const rows = await shared.database.query<{ body: Buffer }>('SELECT body FROM deliveries', []);
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) expect(row.body.toString('latin1')).not.toMatch(/callback_token|delivery_id/);
});
