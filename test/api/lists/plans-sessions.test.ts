import { expect, test } from 'vitest';
import { Jobs } from '../../../contracts/api/knowledge/knowledge.js';
import { PlansGetResponse } from '../../../contracts/api/plans.js';
import { SessionInitResponse, SessionsGetResponse } from '../../../contracts/api/sessions.js';
import { createPlan, step } from '../../plans/plan-fixture.js';
import { joinOnRecord } from '../moving.js';
import { serveApi } from '../served-api.js';

const api = await serveApi();
const { client } = api;
const FUTURE = new Date(Date.now() + 86_400_000).toISOString();
const PAST = new Date(Date.now() - 86_400_000).toISOString();

/** All ids of a list, page by page, and how many there are said to be. */
async function walked(
  read: (cursor: object) => Promise<{ ids: string[]; count: number; next_cursor?: string | undefined }>,
) {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor === undefined ? {} : { cursor });
    expect(page.count).toBe(5);
    ids.push(...page.ids);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return ids;
}

test('plans and sessions are read by cursor, of a time, of an agent', async () => {
  await joinOnRecord(api, 'worker-1');
  const plans: string[] = [];
  for (let nth = 0; nth < 5; nth += 1)
    plans.unshift((await createPlan(client, [step('a', 'worker', 'x')], { auto_approve: false })).plan_id);
  const listPlans = async (body: object) => {
    const { plans: found, ...page } = await client.ok(
      '/plans/get',
      { page_size: 2, ...body },
      PlansGetResponse.strict(),
    );
    return { ...page, ids: found.map(({ plan_id }) => plan_id) };
  };
  expect(await walked(listPlans)).toEqual(plans);
  expect((await listPlans({ since: PAST, until: FUTURE, state: 'proposed' })).count).toBe(5);
  for (const filter of [{ since: FUTURE }, { until: PAST }]) expect((await listPlans(filter)).ids).toEqual([]);
  const { next_cursor: cursor } = await listPlans({});
  expect((await client.post('/plans/get', { cursor, state: 'proposed' })).status).toBe(400);
  expect((await client.post('/plans/get', { cursor, page: 2 })).status).toBe(400);

  const listSessions = async (body: object) => {
    const query = { page_size: 2, ...body };
    const { sessions, ...page } = await client.ok('/sessions/get', query, SessionsGetResponse.strict());
    return { ...page, ids: sessions.map(({ session_id }) => session_id) };
  };
  expect((await walked(listSessions)).length).toBe(5);
  const { session_id } = await client.ok('/sessions/init', { agent_type: 'worker' }, SessionInitResponse);
  expect((await listSessions({ agent_type: 'worker', since: PAST, until: FUTURE })).ids).toEqual([session_id]);
  for (const filter of [{ since: FUTURE }, { until: PAST }]) expect((await listSessions(filter)).ids).toEqual([]);
});

test('the jobs of a knowledge base are listed, with what failed', async () => {
  const namespace = 'handbook';
  await client.post('/knowledge_base/new', { namespace, documents: [{ source_id: 'a', content: 'Words.' }] });
  await client.post('/knowledge_base/ingest', { namespace, source_id: 'b', content: ' ' });
  const { jobs } = await client.ok('/knowledge_base/get_jobs', { namespace }, Jobs.strict());
  expect(jobs).toMatchObject([
    { status: 'failed', context: { operation: 'ingest', source_id: 'b' }, error: { code: 'EMPTY' } },
    {
      status: 'completed',
      context: { operation: 'create', source_id: 'a' },
      progress: { percent: 100 },
      result: { created: 1 },
    },
  ]);
});
