import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GetPoliciesResponse } from '../../contracts/api/policies/policies.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { httpServer } from '../runtime/loopback-server.js';
import { type NewPolicy, policyFor } from './policy-fixture.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
});
afterEach(async () => {
  const { policies } = await api.client.ok('/policies/get_policies', { page_size: 100 }, GetPoliciesResponse);
  for (const { policy_id } of policies) await api.client.post('/policies/delete_policy', { policy_id });
});

const policy = (fields: Partial<NewPolicy>) =>
  policyFor(api.client, {
    scope: 'admission',
    decision: 'deny',
    ...fields,
    match: { actions: ['register'], ...fields.match },
  });
/** The status of a registration. */
const registered = async (body: object): Promise<number> => {
  const named = { agent_type: 'painter', instance_id: randomUUID(), ...body };
  return (await api.client.post('/agents/register', named)).status;
};
const cardWith = (...ids: string[]) => ({ name: 'Painter', skills: ids.map((id) => ({ id })) });

describe('skills of a registration', () => {
  test.each<[string, object, number]>([
    ['that it declares', { skills: [{ id: 'paint' }, { id: 'deploy' }] }, 403],
    ['on the card that it brings', { agent_card: cardWith('deploy') }, 403],
    ['of other names', { skills: [{ id: 'paint' }], agent_card: cardWith('draw') }, 200],
    ['that it does not have', {}, 200],
  ])('a policy that denies a skill sees those %s', async (_what, body, status) => {
    await policy({ match: { skills: ['deploy'] } });
    expect(await registered(body)).toBe(status);
  });

  test.each<[string, object, number]>([
    ['all of them fit', { skills: [{ id: 'paint' }], agent_card: cardWith('paint.oil') }, 200],
    ['one does not', { skills: [{ id: 'paint' }, { id: 'deploy' }] }, 403],
    ['there is none', {}, 403],
  ])('a policy that allows skills applies where all fit: %s', async (_what, body, status) => {
    await policy({ decision: 'allow', match: { skills: ['paint*'] }, priority: 1 });
    await policy({ priority: 2 });
    expect(await registered(body)).toBe(status);
  });
});

test('the card of a hosted agent is decided about as it was fetched', async () => {
  const { url } = await httpServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(cardWith('deploy')));
  });
  await policy({ match: { skills: ['deploy'] } });
  expect(await registered({ public_url: url })).toBe(403);
  const found = await api.database.query('SELECT 1 FROM agents WHERE public_url = $1', [url]);
  expect(found).toEqual([]);
});

test('expressions see what is registered in the end, also what a registration does not name', async () => {
  const expression = 'request.arguments.tools.exists(t, t == "shell") || "deploy" in request.agent.skill_ids';
  await policy({ evaluator: { type: 'cel', expression } });
  expect(await registered({})).toBe(200);
  expect(await registered({ tools: ['read'] })).toBe(200);
  expect(await registered({ tools: ['read', 'shell'] })).toBe(403);
  expect(await registered({ agent_card: cardWith('deploy') })).toBe(403);
});
