import { expect, test } from 'vitest';
import { FleetClient } from '../../../sdk/index.js';
import { serveApi } from '../../api/served-api.js';
import { cleanUp } from '../../setup/clean-up.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { held, calling } = await approvalsFixture(api);

async function client(): Promise<FleetClient> {
  const { client_id: clientId, client_secret: clientSecret } = await api.credentialOf(api.tenantId, ['admin']);
  const made = new FleetClient({ url: api.baseUrl, clientId, clientSecret });
  cleanUp(() => made.close());
  return made;
}

test('a client approves, rejects, edits arguments, and reads and exports who decided', async () => {
  const [one, other] = [await client(), await client()];
  const [paid, refused] = [await held({ quorum: 2 }), await held()];
  const { id: call } = await calling({ cents: 5 });
  expect(await one.approvals.approve(paid, { comment: 'fine' })).toMatchObject({ new_state: 'input-required' });
  await expect(one.approvals.approve(paid)).rejects.toMatchObject({ code: 'ALREADY_RESOLVED', status: 409 });
  expect(await other.approvals.approve(paid)).toMatchObject({ new_state: 'working' });
  expect(await one.approvals.reject(refused, { comment: 'no' })).toMatchObject({ new_state: 'failed' });
  expect(await one.approvals.approve(call, { arguments: { cents: 4 } })).toMatchObject({ new_state: 'working' });
  const [first, second] = await one.approvals.get(paid);
  expect([first?.comment, second?.resolution]).toEqual(['fine', 'approved']);
  expect(first?.principal).not.toEqual(second?.principal);
  const exported = [];
  for await (const approval of one.approvals.export({ since: '2026-01-01T00:00:00Z' })) exported.push(approval);
  expect(exported.map(({ message_id, resolution }) => [message_id, resolution])).toEqual([
    [paid, 'approved'],
    [paid, 'approved'],
    [refused, 'rejected'],
    [call, 'approved'],
  ]);
});
