/**
 * The librarian: a hosted agent in a process of its own, an A2A server that the mesh posts messages to. It counts, sums
 * up, finds keywords and makes tables of JSON, without a model.
 *
 *     node dist/examples/librarian.js
 */
import { Agent } from '../sdk/index.js';
import { answer } from './librarian/answer.js';
import { untilToldToStop } from './lifetime.js';
import { lineLog } from './line-log.js';
import { findPlatform } from './platform-access.js';

const AGENT_TYPE = 'librarian';
/** On the way out, what is running may take this long. */
const GRACE_SECONDS = 3;

async function main(stopped: AbortSignal): Promise<void> {
  const agent = new Agent({
    ...(await findPlatform(process.env, stopped)),
    type: AGENT_TYPE,
    instanceId: process.env.EXAMPLE_HOSTED_INSTANCE_ID || 'librarian-1',
    name: 'Librarian',
    description: 'Counts words, sums texts up, finds keywords and makes tables of JSON.',
    version: '1.0.0',
    maxConcurrentSessions: 200,
    drainOnSignals: false, // the end of whoever started this process is one more reason
    log: lineLog(AGENT_TYPE),
  });
  agent.onMessage(async function* (task) {
    for (const section of answer(task.parts)) yield section;
  });
  agent.skill(
    { id: 'analyze', name: 'Analyze a text', description: 'Summary, keywords and counts', tags: ['text'] },
    (task) => answer(task.parts),
  );
  agent.skill(
    { id: 'tabulate', name: 'JSON to table', description: 'A Markdown table of JSON', tags: ['json'] },
    (task) => answer(task.parts),
  );
  stopped.addEventListener('abort', () => void agent.close(GRACE_SECONDS).catch(() => undefined)); // `closed` below says why
  await agent.serve({ port: Number(process.env.EXAMPLE_HOSTED_PORT || 0) });
  await agent.closed;
}

const stopped = untilToldToStop();
main(stopped).then(
  () => process.exit(0),
  (error: unknown) => {
    if (stopped.aborted) process.exit(0);
    process.stderr.write(`${AGENT_TYPE}: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
