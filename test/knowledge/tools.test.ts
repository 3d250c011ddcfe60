import { readFileSync } from 'node:fs';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { IngestResponse } from '../../contracts/api/knowledge/knowledge.js';
import type { QueryResponse } from '../../contracts/api/knowledge/knowledge-query.js';
import { ResolveResponse } from '../../contracts/api/messages.js';
import { Guard } from '../../contracts/api/policies/guards.js';
import { PolicyResponse } from '../../contracts/api/policies/policies.js';
import { LIMITS } from '../../contracts/limits.js';
import { ok } from '../../contracts/primitives.js';
import { ingestWorkflowId } from '../../contracts/workflows.js';
import { Agent, type AgentTask, FleetClient, SILENT_LOG } from '../../sdk/index.js';
import { sharedPlatform } from '../setup/platform/shared-platform.js';
import { until } from '../setup/until.js';
import { TestBase } from './fixture.js';

const shared = await sharedPlatform();
const { client } = shared.platform;
const { base_url: url, ca_file, ...credentials } = shared.platform.devJson();
const own = { url, ca: readFileSync(ca_file, 'utf8') };
/** Put together here, so that scanners of repositories do not take it for a real one. */
const KEY = `AKI${'AZ7Q3M5N1P9R2T4V6'}`;

/** What the agent does with its next message. */
let work: (task: AgentTask) => Promise<unknown>;
beforeAll(async () => {
  const { agent_client_id: clientId, agent_client_secret: clientSecret } = credentials;
  const named = { type: 'reader', instanceId: 'reader-1', drainOnSignals: false, log: SILENT_LOG };
  const agent = new Agent({ ...own, clientId, clientSecret, ...named });
  agent.onMessage(async (task) => JSON.stringify(await work(task)));
  await agent.connect();
  return () => agent.close(0);
});

let base: TestBase;
beforeEach(async () => {
  base = await TestBase.create(client);
});

const send = () => client.send('work', { metadata: { agent_type: 'reader' } });
/** What a tool call of the agent gives, or the code with which it is refused. */
async function asAgent(call: (task: AgentTask) => Promise<unknown>): Promise<unknown> {
  work = (task) => call(task).catch((error: { code: string }) => error.code);
  const [part] = (await send()).artifacts?.[0]?.parts ?? [];
  return JSON.parse(part?.kind === 'text' ? part.text : 'null');
}
const query = (more: object = {}) => ({ namespace: base.namespace, query: 'sorrel', min_score: 0, ...more });
const ingest = (content: string) => ({ namespace: base.namespace, source_id: 'by-agent', content });
const sources = async () => (await base.sources()).map(({ source_id }) => source_id);

async function policy(tool: string, decision: 'deny' | 'require_approval'): Promise<void> {
  const body = { scope: 'tool', name: `${decision} ${tool}`, decision, match: { tools: [tool] } };
  const created = await client.ok('/policies/create_policy', body, PolicyResponse);
  onTestFinished(async () => {
    await client.ok('/policies/delete_policy', { policy_id: created.policy.policy_id }, ok({}));
  });
}

async function guardSecrets(stage: string): Promise<void> {
  const guard = { guard: 'secrets', enabled: true, decision: 'deny', config: { stages: [stage] } };
  await client.ok('/policies/update_guard', guard, ok({ guard: Guard }));
  onTestFinished(async () => {
    await client.ok('/policies/update_guard', { guard: 'secrets', enabled: false }, ok({ guard: Guard }));
  });
}

test('a policy that denies a tool keeps agents from it, and from no other', async () => {
  await base.ingest({ source_id: 'there', content: 'Sorrel of the caller.' });
  await policy('knowledge_base.ingest', 'deny');
  expect(await asAgent((task) => task.callTool('knowledge_base.ingest', ingest('Sorrel.')))).toBe('POLICY_DENIED');
  expect(await asAgent((task) => task.search(base.namespace, 'sorrel'))).toMatchObject({ results: [{}] });
  await policy('knowledge_base.query', 'deny');
  expect(await asAgent((task) => task.search(base.namespace, 'sorrel'))).toBe('POLICY_DENIED');
  expect(await sources()).toEqual(['there']);
  expect(await base.texts('sorrel')).toEqual(['Sorrel of the caller.']); // callers are no agents
});

test.each<[string, () => Record<string, unknown>, 'rejected' | 'approved', string[]]>([
  ['knowledge_base.ingest', () => ingest('Sorrel.'), 'approved', ['by-agent']],
  ['knowledge_base.query', () => query(), 'rejected', []],
])('a policy that wants approval for %s has a human decide first', async (tool, given, resolution, taken) => {
  await policy(tool, 'require_approval');
  work = (task) => task.callTool(tool, given());
  const task = await send();
  expect(task.status.state).toBe('input-required');
  const { input_request } = await client.message(task.id);
  expect(input_request).toMatchObject({ source: 'policy', tool });
  expect(await sources()).toEqual([]);
  const body = { resolution, request_id: input_request?.request_id };
  await client.ok(`/messages/${task.id}/resolve`, body, ResolveResponse);
  await client.untilState(task.id, resolution === 'approved' ? 'completed' : 'failed');
  expect(await sources()).toEqual(taken);
});

test('guards read what agents take in and what they find', async () => {
  await guardSecrets('tool_arguments');
  const taken = (task: AgentTask) => task.callTool('knowledge_base.ingest', ingest(`The sorrel key is ${KEY}.`));
  expect(await asAgent(taken)).toBe('GUARD_DENIED');
  expect(await sources()).toEqual([]);
  await base.ingest({ content: `The sorrel key is ${KEY}.` });
  await guardSecrets('tool_result');
  expect(await asAgent((task) => task.search(base.namespace, 'sorrel key'))).toBe('GUARD_DENIED');
});

test('a repeated query reads again: what was deleted meanwhile does not answer', async () => {
  await base.ingest({ source_id: 'gone', content: 'Deleted sorrel.' });
  const twice = async (task: AgentTask) => {
    const call = () => task.callTool('knowledge_base.query', query(), { idempotencyKey: 'same' });
    const before = await call();
    await base.client.ok('/knowledge_base/delete_source', { namespace: base.namespace, source_id: 'gone' }, ok({}));
    const after = await call();
    const other = await task
      .callTool('knowledge_base.query', query({ top_k: 1 }), { idempotencyKey: 'same' })
      .catch((error: { code: string }) => error.code);
    return [before, after].map((answer) => (answer as QueryResponse).results.length).concat(other as never);
  };
  expect(await asAgent(twice)).toEqual([1, 0, 'IDEMPOTENCY_MISMATCH']);
});

test('a repeated call takes documents in once', async () => {
  const call = (content: string) => (task: AgentTask) =>
    task.callTool('knowledge_base.ingest', { namespace: base.namespace, content }, { idempotencyKey: base.namespace });
  const refused = (task: AgentTask) => call('Other sorrel.')(task).catch((error: { code: string }) => error.code);
  const calls = async (task: AgentTask) => [
    await call('Once sorrel.')(task),
    await call('Once sorrel.')(task),
    await refused(task),
  ];
  const [first, second, other] = (await asAgent(calls)) as [IngestResponse, IngestResponse, string];
  expect(first).toMatchObject({ status: 'completed', sources: [{ result: 'created' }] });
  expect(second).toEqual(first);
  expect(other).toBe('IDEMPOTENCY_MISMATCH');
  expect(await base.texts('sorrel')).toEqual(['Once sorrel.']);
});

test('the SDK of callers does what tools do for agents, and agents see no private base', async () => {
  const fleet = new FleetClient({ ...own, clientId: credentials.client_id, clientSecret: credentials.client_secret });
  onTestFinished(() => fleet.destroy());
  const { namespace } = base;
  await fleet.knowledge.new({ namespace: `${namespace}-p`, visibility: 'private' });
  const document = { namespace, sourceId: 'a', content: 'Quinces ripen in October.' };
  const { jobId } = await fleet.knowledge.ingest({ ...document, wait: false });
  expect(await fleet.knowledge.waitFor(jobId)).toMatchObject({ status: 'completed', result: { created: 1 } });
  const found = await asAgent(async (task) => {
    const taken = await task.callTool('knowledge_base.ingest', ingest('Medlars ripen in November.'));
    const { results, modeUsed } = await task.search(namespace, 'medlars ripen', { topK: 1 });
    const refused = await task.search(`${namespace}-p`, 'anything').catch((error: { code: string }) => error.code);
    return { taken, source: results[0]?.sourceId, end: results[0]?.citation.charEnd, modeUsed, refused };
  });
  const modeUsed = expect.stringMatching(/lexical|hybrid/);
  const taken = { status: 'completed' };
  expect(found).toMatchObject({ taken, source: 'by-agent', end: 26, modeUsed, refused: 'NOT_FOUND' });
  const listed = (await fleet.knowledge.getSources({ namespace })).sources.map(({ sourceId }) => sourceId);
  expect(listed).toEqual(['by-agent', 'a']);
  await fleet.knowledge.delete({ namespace });
  await expect(fleet.knowledge.getById({ namespace })).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('the content of a document is in no history of Temporal', async () => {
  const content = Array.from({ length: 200 }, (_, at) => `The xylophone has the number ${at}.`).join(' ');
  const { job_id } = await base.ingest({ content }, { wait: false });
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { created: 1 } });
  const handle = shared.temporal.workflow.getHandle(ingestWorkflowId({ tenant_id: shared.tenant_id, job_id }));
  await until(async () => (await handle.describe()).status.name === 'COMPLETED', { what: 'the end of the workflow' });
  expect(JSON.stringify(await handle.fetchHistory())).not.toMatch(/xylophone|eHlsb3Bob25l/);
});

test('an answer that is larger than a result may be leaves out its last results, and says so', async () => {
  const documents = Array.from({ length: 50 }, (_, at) => ({
    source_id: `large-${at}`,
    content: `Large sorrel ${at}.`,
    metadata: { note: 'n'.repeat(LIMITS.metadataBytes - 100) },
  }));
  await base.ingest({ documents }, { wait: true });
  const all = await base.query('sorrel', { top_k: 50 });
  expect(all.results).toHaveLength(50);
  expect(all.results_omitted).toBeUndefined();
  const { kept, omitted, bytes, total } = (await asAgent(async (task) => {
    const answer = (await task.callTool('knowledge_base.query', query({ top_k: 50 }))) as QueryResponse;
    const { results, results_omitted, total_candidates } = answer;
    const ids = results.map(({ source_id }) => source_id);
    return { kept: ids, omitted: results_omitted, bytes: JSON.stringify(answer).length, total: total_candidates };
  })) as { kept: string[]; omitted: number; bytes: number; total: number };
  expect(kept).toEqual(all.results.slice(0, kept.length).map(({ source_id }) => source_id));
  expect(kept.length + omitted).toBe(50);
  expect(total).toBe(50);
  expect(bytes).toBeLessThanOrEqual(LIMITS.toolResultBytes);
  expect(bytes).toBeGreaterThan(LIMITS.toolResultBytes - 2 * LIMITS.metadataBytes);
});
