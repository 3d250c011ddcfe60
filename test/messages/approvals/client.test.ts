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
  expect(await one.messages.resolve(paid, { resolution: 'approved', comment: 'fine' })).toMatchObject({
    newState: 'input-required',
  });
  await expect(one.messages.resolve(paid, { resolution: 'approved' })).rejects.toMatchObject({
    code: 'ALREADY_RESOLVED',
    status: 409,
  });
  expect(await other.messages.resolve(paid, { resolution: 'approved' })).toMatchObject({ newState: 'working' });
  expect(await one.messages.resolve(refused, { resolution: 'rejected', comment: 'no' })).toMatchObject({
    newState: 'failed',
  });
  expect(await one.messages.resolve(call, { resolution: 'approved', arguments: { cents: 4 } })).toMatchObject({
    newState: 'working',
  });
  const { approvals } = await one.messages.getApprovals({ messageId: paid });
  const [first, second] = approvals;
  expect([first?.comment, second?.resolution]).toEqual(['fine', 'approved']);
  expect(first?.principal).not.toEqual(second?.principal);
  const exported = [];
  for await (const approval of one.messages.exportApprovals({ since: '2026-01-01T00:00:00Z' })) exported.push(approval);
  expect(exported.map(({ messageId, resolution }) => [messageId, resolution])).toEqual([
    [paid, 'approved'],
    [paid, 'approved'],
    [refused, 'rejected'],
    [call, 'approved'],
  ]);
});
