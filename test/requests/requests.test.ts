import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  RequestGetByIdResponse,
  RequestGetSimilarResponse,
  type RequestRecord,
  RequestsGetResponse,
} from '../../contracts/api/policies/requests.js';
import { joinOnRecord } from '../api/moving.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture, EXECUTOR } from '../messages/approvals/approvals-fixture.js';
import { createPlan, step } from '../plans/plan-fixture.js';
import type { ApiClient } from '../setup/platform/api-client.js';

const api = await serveApi();
const { approvalsOf, held, calling, person, outcome } = await approvalsFixture(api);

const list = (body: object = {}, client: ApiClient = api.client) =>
  client.ok('/requests/get', body, RequestsGetResponse);
const one = async (request_id: string, client: ApiClient = api.client) =>
  (await client.ok('/requests/get_by_id', { request_id }, RequestGetByIdResponse)).request;
const openOf = async (message_id: string) => {
  const open = "SELECT request_id FROM input_requests WHERE message_id = $1 AND state = 'pending'";
  return (await api.database.value<string>(open, [message_id])) ?? '';
};
const idsOf = (requests: RequestRecord[]) => requests.map(({ request_id }) => request_id);

test('a request says what is asked, by whom, and afterwards who decided', async () => {
  const args = { amount: 7, to: 'ada' };
  const { id, request } = await calling(args);
  const { id: approver, client } = await person('admin');
  expect(await one(request.request_id, client)).toMatchObject({
    ...{ message_id: id, state: 'open', agent_type: 'worker', about: 'go', may_answer: true },
    input_request: { tool: 'pay', arguments: args, executor: EXECUTOR },
    sent_by: { type: 'credential' },
  });
  expect(await outcome(client, id, { resolution: 'approved', comment: 'fine' })).toBe('200 working');
  const by = { type: 'credential', id: approver, name: expect.any(String) };
  const decided = await one(request.request_id, client);
  expect(decided).toMatchObject({
    ...{ state: 'decided', may_answer: false, outcome: { state: 'pending' } },
    decided: { resolution: 'approved', comment: 'fine', principals: [by] },
  });
  expect(await api.client.failure('/requests/get_by_id', { request_id: 'req_x' })).toBe('404 NOT_FOUND');
});

test('the trail keeps what each decision was about, also where the arguments were edited between two', async () => {
  const { id, request } = await calling({ amount: 7 }, { quorum: 2 });
  const [first, second] = [await person('admin'), await person('admin')];
  expect(await outcome(first.client, id, { resolution: 'approved' })).toBe('200 input-required');
  const edited = { resolution: 'approved', arguments: { amount: 5 } };
  expect(await outcome(second.client, id, edited)).toBe('200 input-required');
  expect(await outcome(first.client, id, { resolution: 'approved' })).toBe('200 working');
  const about = { title: request.title, tool: 'pay', executor: EXECUTOR };
  expect(await approvalsOf({ message_id: id })).toMatchObject([
    { ...about, arguments: { amount: 7 } },
    { ...about, arguments: { amount: 5 } },
    { ...about, arguments: { amount: 5 } },
  ]);
  expect((await one(request.request_id)).decided?.principals).toHaveLength(2);
});

test('pages go on by cursor, in each order, and no request is missed or repeated', async () => {
  const type = `paged-${randomUUID().slice(0, 8)}`;
  const instance = `${type}-1`;
  await joinOnRecord(api, instance);
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1)
    ids.push(await openOf(await held({ timeout_seconds: 5_000 - count, approvers: [type] })));
  const walk = async (query: object) => {
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await list({ ...query, approver: type, page_size: 2, ...(cursor && { cursor }) });
      expect(page.count).toBe(5);
      seen.push(...idsOf(page.requests));
      cursor = page.next_cursor;
      if (cursor === undefined) return seen;
    }
  };
  expect(await walk({})).toEqual(ids);
  expect(await walk({ state: 'all' })).toEqual(ids);
  expect(await walk({ sort: 'newest' })).toEqual(ids.toReversed());
  expect(await walk({ sort: 'expires' })).toEqual(ids.toReversed());
  const { next_cursor: cursor } = await list({ approver: type, page_size: 2 });
  expect(await api.client.failure('/requests/get', { approver: 'another', cursor })).toBe('400 BAD_REQUEST');
  const { client: another } = await person('admin');
  expect(await another.failure('/requests/get', { approver: type, cursor })).toBe('400 BAD_REQUEST');
});

test('each filter leaves out what it does not name', async () => {
  const tool = `tool-${randomUUID().slice(0, 8)}`;
  const { id, request } = await calling({ n: 1 }, {}, tool);
  const [found] = (await list({ tool })).requests;
  expect(found?.message_id).toBe(id);
  const { session_id = '', agent_type } = found ?? {};
  const same = { tool, session_id, agent_type, kind: 'approval', source: 'policy', after: '2020-01-01T00:00:00Z' };
  expect(idsOf((await list(same)).requests)).toEqual([request.request_id]);
  const others = {
    ...{ session_id: 'ses_x', agent_type: 'painter', kind: 'form', source: 'agent', user_id: 'ada', state: 'decided' },
    ...{ before: '2020-01-01T00:00:00Z', after: '2090-01-01T00:00:00Z' },
  };
  for (const [name, value] of Object.entries(others))
    expect([name, (await list({ tool, [name]: value })).requests]).toEqual([name, []]);
});

test('mine are those that the caller may answer now', async () => {
  const named = await person('read');
  const request_id = await openOf(await held({ approvers: [named.id], quorum: 2 }));
  const other = await person('read');
  expect(idsOf((await list({ mine: true }, other.client)).requests)).not.toContain(request_id);
  expect((await one(request_id, other.client)).may_answer).toBe(false);
  expect(idsOf((await list({ mine: true }, named.client)).requests)).toEqual([request_id]);
  const { message_id = '' } = await one(request_id, named.client);
  expect(await outcome(named.client, message_id, { resolution: 'approved' })).toBe('200 input-required');
  expect((await list({ mine: true }, named.client)).requests).toEqual([]);
});

test('earlier decisions about the same tool call are found by its arguments', async () => {
  const args = { amount: 9, to: randomUUID() };
  const ids: string[] = [];
  for (const resolution of ['approved', 'rejected']) {
    const { id, request } = await calling(args);
    await outcome(api.client, id, { resolution });
    ids.push(request.request_id);
  }
  await calling({ ...args, amount: 10 });
  const { request } = await calling(args);
  const { request_id } = request;
  const { requests } = await api.client.ok('/requests/get_similar', { request_id }, RequestGetSimilarResponse);
  expect(idsOf(requests)).toEqual(ids.toReversed());
  expect(requests.map(({ decided }) => decided?.resolution)).toEqual(['rejected', 'approved']);
});

test('a proposed plan is among them', async () => {
  const { plan_id, session_id } = await createPlan(api.client, [step('look', 'worker', 'look')], {
    auto_approve: false,
  });
  const { requests } = await list({ session_id });
  expect(requests).toMatchObject([{ plan_id, input_request: { source: 'plan' }, about: 'a plan', may_answer: true }]);
});
