import { expect, test } from 'vitest';
import { ExportedApproval } from '../../../contracts/api/policies/approvals.js';
import { newId } from '../../../runtime/ids.js';
import { ASKS, answerMessage } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { approvalsOf, held, caller, outcome, byToken, sent, tokenFor } = await approvalsFixture(api);

test('the trail says who, when, what, from where, and about exactly what', async () => {
  const sender = await caller('read');
  const id = await held({}, sender);
  const callback_token = await tokenFor(id, 'rule_7');
  expect(await byToken(id, { resolution: 'approved', callback_token, comment: 'fine' })).toBe('200 working');
  const approvals = await approvalsOf({ message_id: id });
  const about = 'SELECT request_id, digest, title FROM input_requests WHERE message_id = $1';
  const [request] = await api.database.query(about, [id]);
  expect(approvals).toEqual([
    {
      ...{ approval_id: expect.stringMatching(/^apv_/), ...request, decided_at: expect.any(String) },
      ...{ kind: 'approval', source: 'policy', resolution: 'approved', comment: 'fine', arguments_changed: false },
      ...{ principal: { type: 'callback', id: 'rule_7' }, ip: '127.0.0.1' },
    },
  ]);
  expect(await approvalsOf({ message_id: id }, sender)).toEqual(approvals);
  const path = '/messages/get_approvals';
  expect(await (await caller('read')).failure(path, { message_id: id })).toBe('403 forbidden');
  expect(await api.client.failure(path, { message_id: newId('msg') })).toBe('404 NOT_FOUND');
  const elsewhere = await api.clientOf(await api.otherTenant(), ['full']);
  expect(await elsewhere.failure(path, { message_id: id })).toBe('404 NOT_FOUND');
});

test('an answer by an A2A message is in it like any other', async () => {
  const id = await sent();
  await answerMessage(api, id, ASKS);
  expect((await api.client.send('approve', { taskId: id, blocking: false })).status.state).toBe('working');
  expect(await approvalsOf({ message_id: id })).toMatchObject([
    { source: 'agent', resolution: 'confirmed', ip: '127.0.0.1' },
  ]);
});

test('it is exported as JSON Lines, the oldest first, also more than one part, within a range of time', async () => {
  await api.database.query(
    `INSERT INTO input_decisions (tenant_id, approval_id, request_id, message_id, kind, source, resolution, principal_type, principal_id, voter,
        digest, decided_at)
       SELECT $1, 'apv_0-' || lpad(n::text, 6, '0'), 'req_' || n, 'msg_x', 'approval', 'policy', 'approved', 'credential', 'cred_1', 'v', 'd',
              '2020-01-01T00:00:00Z'::timestamptz + n * interval '1 minute' FROM generate_series(0, 2499) AS n`,
    [api.tenantId],
  );
  const exported = async (range: object) => {
    const { status, headers, body } = await api.client.post('/messages/export_approvals', range);
    expect([status, headers.get('content-type')]).toEqual([200, 'application/jsonl']);
    const [end, ...lines] = (typeof body === 'string' ? body : JSON.stringify(body)).split('\n').reverse();
    expect(end).toBe('');
    return lines.reverse().map((line) => ExportedApproval.parse(JSON.parse(line)));
  };
  const all = await exported({ until: '2021-01-01T00:00:00Z' });
  expect(all).toHaveLength(2_500);
  expect(all.map(({ approval_id }) => approval_id)).toEqual(all.map(({ approval_id }) => approval_id).toSorted());
  expect(all[0]).toMatchObject({ tenant_id: api.tenantId, message_id: 'msg_x', request_id: 'req_0' });
  const range = { since: '2020-01-01T00:10:00Z', until: '2020-01-01T00:12:00Z' };
  expect((await exported(range)).map(({ request_id }) => request_id)).toEqual(['req_10', 'req_11']);
  const elsewhere = await api.clientOf(await api.otherTenant(), ['admin']);
  expect((await elsewhere.post('/messages/export_approvals', {})).body).toBe('');
  expect(await (await caller('read')).failure('/messages/export_approvals', {})).toBe('403 forbidden');
});

test('no role of the platform changes or deletes a decision', async () => {
  const id = await held();
  expect(await outcome(api.client, id, { resolution: 'approved' })).toBe('200 working');
  const attempts = [
    'DELETE FROM input_decisions',
    "UPDATE input_decisions SET resolution = 'rejected'",
    "UPDATE input_decisions SET principal_id = 'somebody', decided_at = now()",
    "UPDATE input_decisions SET digest = ''",
    "UPDATE input_decisions SET tool = 'another'",
    'DELETE FROM decision_outcomes',
    "UPDATE decision_outcomes SET outcome = 'failed'",
  ];
  const denied = { code: '42501' };
  for (const sql of attempts) {
    await expect(api.db.tenant(api.tenantId, (tx) => tx.query(sql))).rejects.toMatchObject(denied);
    await expect(api.db.system((tx) => tx.query(sql))).rejects.toMatchObject(denied);
  }
  const erase =
    "UPDATE input_decisions SET comment = NULL, ip = NULL, title = NULL, arguments = NULL WHERE message_id = 'msg_x'";
  await expect(api.db.tenant(api.tenantId, (tx) => tx.query(erase))).rejects.toMatchObject(denied);
  await expect(api.db.system((tx) => tx.query(erase))).resolves.toBeDefined();
});
