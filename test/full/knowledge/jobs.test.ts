import { expect, test } from 'vitest';
import { ingestWorkflowId } from '../../../contracts/workflows.js';
import { TestBase } from '../../knowledge/fixture.js';
import { testProvider } from '../../setup/embeddings.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';

const provider = await testProvider();
const { platform, database, temporal } = await startPlatform({ ...provider.env, FLEET_LOG_LEVEL: 'debug' });
const { tenant_id } = platform.devJson();
const workflowOf = (job_id: string) => temporal.workflow.getHandle(ingestWorkflowId({ tenant_id, job_id }));

/** A job whose only document is being embedded, until `open`. */
async function jobAtWork(content: string) {
  const base = await TestBase.create(platform.client);
  await base.ingest({ source_id: 'kept', content: 'Kept words.' });
  const { held, open } = provider.hold(content);
  const { job_id } = await base.ingest({ source_id: 'new', content }, { wait: false });
  await held;
  return { base, job_id, open };
}

/** Has somebody look after the job at once. */
const look = (job_id: string) =>
  database.query('UPDATE knowledge_jobs SET wake_at = now() WHERE job_id = $1', [job_id]);

/** Waits until no slice of any job is at work, also of one whose workflow is gone. */
async function untilWorkersIdle(): Promise<void> {
  const metricsUrl = await platform.metricsUrl();
  const used = /^temporal_worker_task_slots_used\{.*task_queue="knowledge".*worker_type="ActivityWorker".*\} (\d+)$/m;
  const slots = async () => used.exec(await (await fetch(metricsUrl)).text())?.[1];
  const wait = { timeoutMs: 60_000, what: 'the end of all slices' };
  expect(await until(async () => (await slots()) === '0', wait)).toBe(true);
}

test('the Temporal UI says how far a job is', async () => {
  const { base, job_id, open } = await jobAtWork('Slow medlar.');
  open();
  await base.ended(job_id);
  const details = await workflowOf(job_id)
    .query<string>('__temporal_workflow_metadata')
    .catch((error: Error) => error.message);
  expect(JSON.stringify(details)).toContain(`Takes documents into \`${base.namespace}\`: 1 of 1 done.`);
});

test.each<[string, (job_id: string) => Promise<unknown>]>([
  ['cancels in the Temporal UI', (job_id) => workflowOf(job_id).cancel()],
  [
    'terminates, once somebody looks,',
    (job_id) =>
      workflowOf(job_id)
        .terminate()
        .then(() => look(job_id)),
  ],
])('a job that an operator %s fails, and what was written before stays', async (how, stop) => {
  const { base, job_id, open } = await jobAtWork(`Medlar that somebody ${how}.`);
  await stop(job_id);
  const job = await base.ended(job_id);
  open();
  expect(job).toMatchObject({ status: 'failed', error: { code: 'CANCELED' } });
  await untilWorkersIdle();
  expect(await base.texts('words medlar')).toEqual(['Kept words.']);
});

test('a job that lost its workflow gets another one', async () => {
  const { base, job_id, open } = await jobAtWork('Lost sorb.');
  const workflowExecution = { workflowId: ingestWorkflowId({ tenant_id, job_id }) };
  const { namespace } = temporal.options;
  await temporal.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
  const isGone = () =>
    workflowOf(job_id)
      .describe()
      .then(
        () => false,
        () => true,
      );
  await until(isGone, { what: 'the loss of the workflow' });
  await look(job_id);
  open();
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed' });
});
