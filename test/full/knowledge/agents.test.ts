import { expect, test } from 'vitest';
import { type IngestResponse, Stats } from '../../../contracts/api/knowledge/knowledge.js';
import { SILENT_LOG } from '../../../sdk/index.js';
import { TestBase } from '../../knowledge/fixture.js';
import { sdkOn } from '../../sdk/platform/fixture.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';

const { platform } = await startPlatform({ FLEET_EXAMPLES: 'on' });
const { client } = platform;

test('the example librarian answers from the documentation, with citations', async () => {
  const library = { namespace: 'library' };
  const patience = { timeoutMs: 120_000, what: 'the library' };
  await until(async () => (await client.ok('/knowledge_base/get_stats', library, Stats)).stats.sources > 10, patience);
  const question = 'ask: how long does a message wait in its queue?';
  const answer = await until(async () => {
    const task = await client.send(question, { metadata: { agent_type: 'librarian' } });
    const parts = task.artifacts?.flatMap(({ parts: each }) => each) ?? [];
    const text = parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
    return text.includes('Sources:') ? { text, parts } : undefined;
  }, patience);
  expect(answer.text).toMatch(/queue/i);
  expect(answer.text).toMatch(/\[1\] .*characters \d+ to \d+, \w+\.md/);
  const citations = expect.arrayContaining([expect.objectContaining({ sourceId: expect.stringMatching(/\.md$/) })]);
  expect(answer.parts.find((part) => part.kind === 'data')).toMatchObject({ data: { citations } });
}, 300_000);

test('an agent’s call that is repeated after a restart of the platform takes documents in once', async () => {
  const base = await TestBase.create(client);
  /** What the agent's call gives, from an agent that is connected for it alone: addresses change with a restart. */
  async function taken(content: string, contextId?: string): Promise<IngestResponse & { contextId: string }> {
    const agent = sdkOn(() => platform.devJson()).agentOf('reader', { log: SILENT_LOG });
    const body = { namespace: base.namespace, content };
    agent.onMessage(async (task) =>
      JSON.stringify(await task.callTool('knowledge_base.ingest', body, { idempotencyKey: 'once' })),
    );
    await agent.connect();
    const task = await client.send('work', { contextId, metadata: { agent_type: 'reader' } });
    const [part] = task.artifacts?.[0]?.parts ?? [];
    await agent.close(0);
    const answer = JSON.parse(part?.kind === 'text' ? part.text : 'null') as IngestResponse;
    return { ...answer, contextId: task.contextId };
  }
  const { job_id, source_id = '', contextId } = await taken('Once sorrel.');
  await base.ingest({ source_id, content: 'Sorrel of a later call.' });
  await platform.restart();
  expect(await taken('Once sorrel.', contextId)).toMatchObject({ job_id, source_id, status: 'completed' });
  expect((await base.sources()).map((source) => source.source_id)).toEqual([source_id]);
  expect(await base.texts('sorrel')).toEqual(['Sorrel of a later call.']);
}, 120_000);
