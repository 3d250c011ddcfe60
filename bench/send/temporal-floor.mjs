/**
 * The lower bound for a durable message: a bare workflow of three steps on the dev server, each an INSERT of one row. The client and the
 * workers of both queues share this process, as they do in the platform.
 */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import pg from 'pg';
import { serve } from '../harness/child-process.mjs';
import { measured } from '../harness/measure.mjs';

const WORKFLOW_QUEUE = 'bare';
const AGENT_QUEUE = 'bare-agent';
const TABLE = `CREATE TABLE steps (message_id text, step text, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (message_id, step))`;
const INSERT = 'INSERT INTO steps (message_id, step) VALUES ($1, $2)';

/** @param {{ databaseUrl: string, poolMax: number, temporalAddress: string, namespace: string }} options */
serve(async ({ databaseUrl, poolMax, temporalAddress, namespace }) => {
  const database = new pg.Pool({ connectionString: databaseUrl, max: poolMax });
  await database.query(TABLE);
  const step = (name) => async (messageId) =>
    void (await database.query({ name: 'step', text: INSERT, values: [messageId, name] }));

  const logger = new DefaultLogger('ERROR');
  Runtime.install({ logger, shutdownSignals: [] });
  const workflowsPath = fileURLToPath(new URL('temporal-floor-workflow.mjs', import.meta.url));
  const workflowBundle = await bundleWorkflowCode({ workflowsPath, logger });
  const context = { connection: await NativeConnection.connect({ address: temporalAddress }), namespace };
  const workers = await Promise.all([
    Worker.create({
      ...context,
      taskQueue: WORKFLOW_QUEUE,
      workflowBundle,
      activities: { accept: step('accept'), finish: step('finish') },
    }),
    Worker.create({ ...context, taskQueue: AGENT_QUEUE, activities: { dispatch: step('dispatch') } }),
  ]);
  for (const worker of workers) {
    worker.run().catch((error) => {
      process.stderr.write(`temporal floor: ${error.message}\n`);
      process.exit(1);
    });
  }

  const client = new Client({ connection: await Connection.connect({ address: temporalAddress }), namespace });
  const run = async () => {
    const messageId = randomUUID();
    const args = [{ messageId, agentQueue: AGENT_QUEUE }];
    const handle = await client.workflow.start('bareMessage', {
      taskQueue: WORKFLOW_QUEUE,
      workflowId: messageId,
      args,
    });
    await handle.result();
  };
  return { commands: measured(run) };
});
