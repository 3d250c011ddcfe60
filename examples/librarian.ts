/**
 * The librarian: a hosted agent, an A2A server that the mesh posts messages to. It answers questions from the documents of a knowledge base,
 * counts words, summarizes, finds keywords and makes tables of JSON, without a model. Other agents publish notices by its tool.
 *
 *     node dist/examples/librarian.js
 */
import { Agent, z } from '../sdk/index.js';
import { answer } from './librarian/answer.js';
import { askLibrary, questionIn } from './librarian/ask.js';
import { lineLog } from './line-log.js';
import { findPlatform } from './platform-access.js';
import { runUntilStopped } from './run-until-stopped.js';

const AGENT_TYPE = 'librarian';
/** Time limit for running work when the agent stops. */
const GRACE_SECONDS = 3;

async function main(stopped: AbortSignal): Promise<void> {
  const agent = new Agent({
    ...(await findPlatform(process.env, stopped)),
    type: AGENT_TYPE,
    instanceId: process.env.EXAMPLE_HOSTED_INSTANCE_ID || 'librarian-1',
    name: 'Librarian',
    description:
      'Answers questions from documents, counts words, summarizes texts, finds keywords and makes tables of JSON.',
    version: '1.0.0',
    maxConcurrentSessions: 200,
    drainOnSignals: false, // `runUntilStopped` also observes the end of the parent process
    log: lineLog(AGENT_TYPE),
  });
  agent.onMessage(async function* (task) {
    const question = questionIn(task.text);
    const sections = question === undefined ? answer(task.parts) : await askLibrary(task, question);
    for (const section of sections) yield section;
  });
  agent.skill(
    { id: 'ask', name: 'Ask the library', description: 'Passages of documents, with citations', tags: ['knowledge'] },
    (task) => askLibrary(task, questionIn(task.text) ?? task.text),
  );
  agent.skill(
    { id: 'analyze', name: 'Analyze a text', description: 'Summary, keywords and counts', tags: ['text'] },
    (task) => answer(task.parts),
  );
  agent.skill(
    { id: 'tabulate', name: 'JSON to table', description: 'A Markdown table of JSON', tags: ['json'] },
    (task) => answer(task.parts),
  );
  let notices = 0;
  const notice = z
    .object({ text: z.string().min(1).max(1_000) })
    .describe('Publishes a notice on the board (simulated).');
  agent.tool('publish_notice', notice, ({ text }) => {
    notices += 1;
    return { number: notices, text };
  });
  stopped.addEventListener('abort', () => void agent.close(GRACE_SECONDS).catch(() => undefined)); // `closed` below reports the error
  await agent.serve({ port: Number(process.env.EXAMPLE_HOSTED_PORT || 0) });
  await agent.closed;
}

runUntilStopped(AGENT_TYPE, main);
