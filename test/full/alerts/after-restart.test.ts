import { expect, test } from 'vitest';
import { AlertRule } from '../../../contracts/api/alerts.js';
import { webhook } from '../../alerts/alert-fixture.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { receiver } from '../../setup/receiver.js';
import { RowLock } from '../../setup/row-lock.js';
import { until } from '../../setup/until.js';
import { connect, writeEvent } from '../../telemetry/event-writer.js';

test('links of what was asked before a restart name the address after it', async () => {
  const { platform, database } = await startPlatform();
  const to = await receiver();
  const body = { name: 'ask', condition: { event: 'message.input_required' }, notifications: [webhook(to.url)] };
  const { tenant_id } = await platform.client.ok('/policies/new_alert', body, AlertRule);
  await joinAgent(platform, { instanceId: 'asks-1', agentType: 'asks' }, (dispatch) =>
    dispatch.ask({ kind: 'confirmation', title: 'Go on?' }),
  );
  // The relay does not come to it before the process dies.
  const held = await RowLock.on(database.url, "SELECT 1 FROM event_cursors WHERE consumer = 'alerts'", []);
  const { id } = await platform.client.send('go', { metadata: { agent_type: 'asks' } });
  const before = platform.baseUrl;
  await platform.kill9();
  await held.release();

  // The API waits for its node's place in the mesh, while the loops of the worker are at work already: they give new events their positions.
  const blocker = await connect(database.url);
  await blocker.query('BEGIN; LOCK TABLE mesh_nodes IN SHARE MODE');
  const started = platform.start();
  for (let event = 0; event < 2; event += 1) {
    const positioned = 'SELECT 1 FROM read_events(0, NULL, 1000) WHERE event_id = $1';
    const eventId = await writeEvent(database, tenant_id);
    await until(async () => (await database.query(positioned, [eventId])).length > 0, {
      what: 'the position of an event',
    });
  }
  await blocker.query('COMMIT');
  await started;
  expect(platform.baseUrl).not.toBe(before);
  const [arrived] = await to.untilArrived(1);
  expect(arrived?.body.resolve_url).toBe(`${platform.baseUrl}/messages/${id}/resolve`);
});
