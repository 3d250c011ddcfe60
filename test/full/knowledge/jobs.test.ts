import { expect, test } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { ingestWorkflowId } from '../../../workflows/definitions.js';
import { platformWithProvider, TestBase } from '../../knowledge/fixture.js';
import { until } from '../../setup/until.js';

const fixture = platformWithProvider({ FLEET_LOG_LEVEL: 'debug' });
const create = () => TestBase.create(fixture.shared.platform.client);
const workflowOf = (job_id: string) =>
  fixture.shared.temporal.workflow.getHandle(
    ingestWorkflowId({ tenant_id: fixture.shared.platform.devJson().tenant_id, job_id }),
  );

/** Waits until no slice of any job is at work, also of one whose workflow is gone. */
async function untilWorkersIdle(): Promise<void> {
  const [, metricsUrl = ''] = /"metrics_url":"([^"]+)"/.exec(fixture.shared.platform.log()) ?? [];
  const used = /^temporal_worker_task_slots_used\{.*task_queue="knowledge".*worker_type="ActivityWorker".*\} (\d+)$/m;
  const slots = async () => used.exec(await (await fetch(metricsUrl)).text())?.[1];
  expect(await until(async () => (await slots()) === '0', { timeoutMs: 60_000, what: 'the end of all slices' })).toBe(
    true,
  );
}

test('a job says how far it is, in its status and in the Temporal UI, and embeds titles and headings with the text', async () => {
  const base = await create();
  const lines = Array.from(
    { length: 9_000 },
    (_, at) => `The ${at === 8_000 ? 'persimmon' : 'apple'} is number ${at}.`,
  );
  const held = fixture.provider.hold('persimmon');
  const document = { title: 'Fruits', filename: 'a.md', content: `# Orchard\n\n## Trees\n\n${lines.join(' ')}` };
  const { job_id } = await base.ingest(
    { documents: [document, { source_id: 'other', content: 'Other words.' }] },
    { wait: false },
  );
  await held.held;
  const { progress, status } = await base.job(job_id);
  expect(status).toBe('processing');
  expect(progress).toMatchObject({ phase: 'working', sources_total: 2, sources_done: 0 });
  expect(progress.chunks_done).toBeGreaterThan(100);
  expect(progress.percent).toBeGreaterThan(20);
  expect(progress.percent).toBeLessThan(50);
  held.open();
  expect((await base.ended(job_id)).progress).toMatchObject({ percent: 100, sources_done: 2 });
  expect(fixture.provider.texts.find((text) => text.includes('persimmon'))).toMatch(/^Fruits\nOrchard > Trees\n/);
  const details = await workflowOf(job_id)
    .query<string>('__temporal_workflow_metadata')
    .catch((error: Error) => error.message);
  expect(JSON.stringify(details)).toContain(`Takes documents into \`${base.namespace}\`: 2 of 2 done.`);
});

test('a job that an operator cancels in the Temporal UI fails, and what it has written stays', async () => {
  const base = await create();
  await base.ingest({ source_id: 'kept', content: 'Kept medlar.' });
  const held = fixture.provider.hold('Stopped medlar');
  const { job_id } = await base.ingest({ source_id: 'stopped', content: 'Stopped medlar.' }, { wait: false });
  await held.held;
  await workflowOf(job_id).cancel();
  const job = await base.ended(job_id);
  held.open();
  expect(job).toMatchObject({ status: 'failed', error: { code: 'CANCELED' } });
  await untilWorkersIdle();
  expect(await base.texts('medlar')).toEqual(['Kept medlar.']);
});

test('a job whose workflow an operator terminates fails as soon as somebody looks', async () => {
  const base = await create();
  const held = fixture.provider.hold('Terminated loquat');
  const { job_id } = await base.ingest({ source_id: 'ended', content: 'Terminated loquat.' }, { wait: false });
  await held.held;
  await workflowOf(job_id).terminate();
  await fixture.shared.database.query('UPDATE knowledge_jobs SET wake_at = now() WHERE job_id = $1', [job_id]);
  const job = await base.ended(job_id);
  held.open();
  expect(job).toMatchObject({ status: 'failed', error: { code: 'CANCELED' } });
  await untilWorkersIdle();
  expect(await base.texts('loquat')).toEqual([]);
});

test('a job that lost its workflow gets another one', async () => {
  const base = await create();
  const held = fixture.provider.hold('Lost sorb');
  const { job_id } = await base.ingest({ source_id: 'lost', content: 'Lost sorb.' }, { wait: false });
  await held.held;
  const { tenant_id } = fixture.shared.platform.devJson();
  const { namespace } = fixture.shared.temporal.options;
  const workflow_id = ingestWorkflowId({ tenant_id, job_id });
  await fixture.shared.temporal.workflowService.deleteWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: workflow_id },
  });
  await until(
    () =>
      workflowOf(job_id)
        .describe()
        .then(
          () => false,
          () => true,
        ),
    { what: 'the loss of the workflow' },
  );
  await fixture.shared.database.query('UPDATE knowledge_jobs SET wake_at = now() WHERE job_id = $1', [job_id]);
  held.open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed' });
});

test('a text of 256 KiB does not stand behind the large jobs of its tenant', async () => {
  const base = await create();
  const held = fixture.provider.hold('Slow damson');
  const jobs = await Promise.all(
    Array.from({ length: 5 }, (_, at) => base.ingest({ content: `Slow damson ${at}.` }, { wait: false })),
  );
  await held.held;
  const quick = 'Quick damson jam. '.repeat(15_000).slice(0, LIMITS.knowledgeInlineBytes);
  expect(await base.ingest({ content: quick })).toMatchObject({ status: 'completed', async: false });
  held.open();
  for (const { job_id } of jobs) expect(await base.ended(job_id)).toMatchObject({ status: 'completed' });
});
