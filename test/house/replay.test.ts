import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from '@temporalio/worker';
import { beforeAll, expect, test } from 'vitest';
import { historyFromText } from '../setup/histories/history-codec.js';
import { quietRuntime } from '../setup/quiet-runtime.js';

const HISTORIES = new URL('../histories/', import.meta.url);
const BUNDLE = fileURLToPath(new URL('../../dist/workflows.bundle.js', import.meta.url));

/** Recorded from a running platform by `npm run record-histories`, one file for each course a workflow can take. */
function* recorded() {
  for (const file of readdirSync(HISTORIES).filter((name) => name.endsWith('.json'))) {
    yield { workflowId: file, history: historyFromText(readFileSync(new URL(file, HISTORIES), 'utf8')) };
  }
}

beforeAll(quietRuntime);

test('the workflows still go the way that recorded ones went', async () => {
  const replayed: string[] = [];
  const results = Worker.runReplayHistories({ workflowBundle: { codePath: BUNDLE } }, recorded());
  for await (const { workflowId, error } of results) {
    if (error) throw new Error(`${workflowId} does not replay: ${error.message}`, { cause: error });
    replayed.push(workflowId);
  }
  expect(replayed.sort()).toEqual([
    'ingest-completed.json',
    'message-approval-expired.json',
    'message-canceled.json',
    'message-completed.json',
    'message-input-resolved.json',
    'message-tool-approved.json',
    'plan-canceled.json',
    'plan-completed.json',
    'push-notifications-retried.json',
    'rule-delivery-retried.json',
    'session-expired.json',
  ]);
});
