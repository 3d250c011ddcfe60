import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { CredentialSecretResponse } from '../../../contracts/api/auth.js';
import { Bases, NewKnowledgeBaseResponse, Stats } from '../../../contracts/api/knowledge/knowledge.js';
import { ok } from '../../../contracts/primitives.js';
import { isModelInstalled, localModelFolder } from '../../../knowledge/embedding/local-model.js';
import { Agent, FleetClient, SILENT_LOG } from '../../../sdk/index.js';
import { TestBase } from '../../knowledge/fixture.js';
import { ApiClient } from '../../setup/platform/api-client.js';
import { type SharedPlatform, startPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';

let shared: SharedPlatform;
beforeAll(async () => {
  shared = await startPlatform({ FLEET_EXAMPLES: 'on' });
  return shared.dispose;
});
const client = () => shared.platform.client;

/** A caller with a credential of these scopes. */
async function callerWith(scopes: string[]): Promise<ApiClient> {
  const { credential, client_secret } = await client().ok(
    '/credentials/create',
    { name: 'x', scopes },
    CredentialSecretResponse,
  );
  return new ApiClient(shared.platform, { client_id: credential.client_id, client_secret });
}

test('a private base is there for its maker and the scope full, and for nobody else', async () => {
  const maker = await callerWith(['full']);
  const base = await TestBase.create(maker, { visibility: 'private', documents: [{ content: 'A private truffle.' }] });
  const reader = await callerWith(['read']);
  const { namespace } = base;
  for (const operation of ['get_by_id', 'get_sources', 'get_stats']) {
    expect(await reader.failure(`/knowledge_base/${operation}`, { namespace })).toBe('404 NOT_FOUND');
    expect(await client().failure(`/knowledge_base/${operation}`, { namespace })).toBe('200');
  }
  expect(await reader.failure('/knowledge_base/query', { namespace, query: 'truffle' })).toBe('404 NOT_FOUND');
  const names = async (of: ApiClient) =>
    (await of.ok('/knowledge_base/get', { page_size: 100 }, Bases)).knowledge_bases.map((one) => one.namespace);
  expect(await names(client())).toContain(namespace);
  expect(await names(reader)).not.toContain(namespace);
  expect(await reader.failure('/knowledge_base/new', { namespace: 'mine' })).toBe('403 forbidden');
  await base.ok(
    'update',
    { visibility: 'tenant' },
    ok({ knowledge_base: NewKnowledgeBaseResponse.shape.knowledge_base }),
  );
  expect(await names(reader)).toContain(namespace);
});

test('agents search and take documents in by tools, and the SDK does the same for callers', async () => {
  const {
    base_url: url,
    ca_file,
    client_id,
    client_secret,
    agent_client_id,
    agent_client_secret,
  } = shared.platform.devJson();
  const own = { url, ca: readFileSync(ca_file, 'utf8') };
  const fleet = new FleetClient({ ...own, clientId: client_id, clientSecret: client_secret });
  onTestFinished(() => fleet.destroy());
  const namespace = `sdk-${randomUUID().slice(0, 8)}`;
  await fleet.knowledge.new({ namespace });
  await fleet.knowledge.new({ namespace: `${namespace}-p`, visibility: 'private' });
  const { jobId } = await fleet.knowledge.ingest({
    namespace,
    sourceId: 'a',
    content: 'Quinces ripen in October.',
    wait: false,
  });
  expect(await fleet.knowledge.waitFor(jobId)).toMatchObject({ status: 'completed', result: { created: 1 } });
  const credential = { clientId: agent_client_id, clientSecret: agent_client_secret };
  const agent = new Agent({
    ...own,
    ...credential,
    type: 'researcher',
    instanceId: 'researcher-1',
    log: SILENT_LOG,
    drainOnSignals: false,
  });
  onTestFinished(() => agent.close(0).catch(() => undefined));
  agent.onMessage(async (task) => {
    const documents = { namespace, source_id: 'b', content: 'Medlars ripen in November.' };
    const taken = (await task.callTool('knowledge_base.ingest', documents)) as { status: string };
    const { results, modeUsed } = await task.search(namespace, 'medlars ripen', { topK: 1 });
    const refused = await task.search(`${namespace}-p`, 'anything').catch((error: { code: string }) => error.code);
    return JSON.stringify([taken.status, results[0]?.sourceId, results[0]?.citation.charEnd, modeUsed, refused]);
  });
  await agent.connect();
  const task = await fleet.send('search', { agentType: 'researcher' });
  const [part] = task.artifacts?.[0]?.parts ?? [];
  expect(JSON.parse(part?.kind === 'text' ? part.text : '')).toEqual([
    'completed',
    'b',
    26,
    isModelInstalled(localModelFolder({})) ? 'hybrid' : 'lexical',
    'NOT_FOUND',
  ]);
  expect((await fleet.knowledge.getSources({ namespace })).sources.map(({ sourceId }) => sourceId)).toEqual(['b', 'a']);
  expect((await fleet.knowledge.getStats({ namespace })).stats).toMatchObject({ sources: 2 });
  await fleet.knowledge.deleteSource({ namespace, sourceId: 'a' });
  await fleet.knowledge.delete({ namespace });
  await expect(fleet.knowledge.getById({ namespace })).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('the example librarian answers from the documentation, with citations', async () => {
  const library = { namespace: 'library' };
  await until(async () => (await client().ok('/knowledge_base/get_stats', library, Stats)).stats.sources > 10, {
    timeoutMs: 120_000,
    what: 'the library',
  });
  const answer = await until(
    async () => {
      const task = await client().send('ask: what is the lease of a message on the fast path?', {
        metadata: { agent_type: 'librarian' },
      });
      const parts = task.artifacts?.flatMap(({ parts: each }) => each) ?? [];
      const text = parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
      return text.includes('Sources:') ? { text, parts } : undefined;
    },
    { timeoutMs: 60_000, what: 'an answer from the library' },
  );
  expect(answer.text).toMatch(/lease/i);
  expect(answer.text).toMatch(/\[1\] .*characters \d+ to \d+, \w+\.md/);
  const data = answer.parts.find((part) => part.kind === 'data');
  expect(data).toMatchObject({
    data: {
      citations: expect.arrayContaining([expect.objectContaining({ sourceId: expect.stringMatching(/\.md$/) })]),
    },
  });
});
