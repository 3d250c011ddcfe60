/** The agents of a row in one process, on the SDK as users write them. SIGTERM lets them leave as in a deploy: they drain, then the process ends. */
import { Agent, SILENT_LOG } from '../../dist/sdk/index.js';
import { serve } from '../harness/child-process.mjs';
import { Work } from './work.mjs';

/**
 * `count` instances of a type, numbered from `first` on, of which the first `broken` always throw. Ready when all have joined.
 * @param {{ access: object, type: string, count: number, first?: number, broken?: number, workMs: number, maxConcurrentSessions?: number, skills?: number, hosted: boolean }} options
 */
serve(async ({ access, type, count, first = 0, broken = 0, workMs, maxConcurrentSessions, skills = 0, hosted }) => {
  const work = new Work(workMs);
  const answer = async (task) => {
    await work.handle();
    return task.text;
  };
  const fail = () => {
    throw new Error('this instance is broken');
  };
  const join = (index) => {
    const instanceId = `${type}-${first + index}`;
    const agent = new Agent({ ...access, type, instanceId, maxConcurrentSessions, log: SILENT_LOG });
    agent.onMessage(index < broken ? fail : answer);
    for (let skill = 0; skill < skills; skill += 1) agent.skill(`skill-${skill}`, answer);
    return hosted ? agent.serve() : agent.connect();
  };
  await Promise.all(Array.from({ length: count }, (_, index) => join(index)));
  return { commands: { forget: work.forget, handlingMs: work.handlingMs } };
});
