import { beforeEach, expect, test } from 'vitest';
import { WebhookEvaluators } from '../../../policy/evaluators/webhook.js';
import { PolicyEngine } from '../../../policy/policy-engine.js';
import { createLogger } from '../../../runtime/logger.js';
import { createSecrets } from '../../../runtime/secrets.js';
import { errorOf } from '../fixture-agent.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { fixture, useMesh } from '../use-mesh.js';

useMesh('a');

let node: MeshNodeUnderTest;
beforeEach(async () => {
  node = await fixture.node();
});

const log = createLogger({ level: 'silent' });
const secrets = createSecrets(Buffer.alloc(32, 7).toString('base64'));

/** A policy about registrations. */
const policy = (decision: 'deny' | 'audit', match: object) =>
  fixture.policy({ scope: 'admission', name: decision, decision, match, reason: 'Not here.' });

/** Says what must be refused. */
async function refused(hello: object): Promise<void> {
  const agent = await node.socket('a');
  agent.send('hello', { instance_id: 'a', ...hello });
  expect((await errorOf(agent, 'POLICY_DENIED')).payload).toMatchObject({
    message: 'The policy deny denies this: Not here.',
  });
  expect((await agent.closed).code).toBe(4403);
}

test.each<[string, object, object]>([
  ['skills', { skills: ['deploy'] }, { skills: [{ id: 'other' }, { id: 'deploy' }] }],
  ['skills on its card', { skills: ['deploy'] }, { agent_card: { name: 'A', skills: [{ id: 'deploy' }] } }],
  ['tools', { arguments: [{ path: 'tools', op: 'contains', value: 'shell' }] }, { tools: ['read', 'shell'] }],
  ['its card', { arguments: [{ path: 'agent_card.name', op: 'eq', value: 'Root' }] }, { agent_card: { name: 'Root' } }],
])('what a policy of registrations denies does not come in with hello: %s', async (_what, match, hello) => {
  await policy('deny', match);
  await refused(hello);
  expect(await fixture.agent('a')).toMatchObject({ status: 'offline', skills: [], tools: [], agent_card: {} });
  expect(await fixture.events('policy.denied')).toMatchObject([{ action: 'register', reason: 'Not here.' }]);
  await node.join('a', { skills: [{ id: 'translate' }], tools: ['read'], agent_card: { name: 'A' } });
  expect(await fixture.agent('a')).toMatchObject({ status: 'available', tools: ['read'] });
});

test('a hello that changes nothing of the registration is not decided about again', async () => {
  const hello = { skills: [{ id: 'deploy', name: 'Deploy' }], tools: ['read'] };
  const { agent } = await node.join('a', hello);
  agent.close();
  await agent.closed;
  await policy('audit', { skills: ['deploy'] });
  await node.join('a', hello);
  expect(await fixture.events('policy.audited')).toEqual([]);
  await node.join('a', { ...hello, tools: ['read', 'write'] });
  expect(await fixture.events('policy.audited')).toMatchObject([{ action: 'register' }]);
});

test('while the policies cannot be read, a hello that would change a registration is refused for the moment', async () => {
  const away = () => Promise.reject(new Error('away'));
  const webhooks = new WebhookEvaluators({ request: away });
  const db = { tenant: away, systemCall: away };
  const policies = new PolicyEngine({ db, secrets, webhooks, log, readGuards: async () => null });
  const agent = await (await fixture.node({ policies })).socket('a');
  agent.send('hello', { instance_id: 'a', tools: ['read'] });
  await errorOf(agent, 'INTERNAL');
  expect((await agent.closed).code).toBe(1011);
});
