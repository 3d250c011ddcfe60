import type { Task } from './a2a.js';
import { eventTo1, messageTo1 } from './a2a-1-results.js';

type Json = Record<string, unknown>;

/** An artifact that the platform named, by the dispatch: a UUID of version 7. */
const NAMED_HERE = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the whole answer was one message: its parts are then the one artifact, which the platform named, and the status says them. */
function isReply({ status: { state, message }, artifacts = [] }: Task): boolean {
  const [artifact, ...others] = artifacts;
  if (state !== 'completed' || !message || !artifact || others.length > 0) return false;
  return NAMED_HERE.test(artifact.artifactId) && JSON.stringify(artifact.parts) === JSON.stringify(message.parts);
}

/**
 * The result of `SendMessage`: `{message}` where the agent answered with one and no task of its own, else `{task}`. The message names the
 * task that keeps it, for `GetTask`.
 */
export function sendResultTo1(task: Task): Json {
  const { message } = task.status;
  if (!message || !isReply(task)) return eventTo1(task);
  return { message: messageTo1({ ...message, taskId: task.id, contextId: task.contextId }) };
}
