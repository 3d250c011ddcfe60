import { setTimeout as delay } from 'node:timers/promises';
import type { AgentTask } from '../../sdk/index.js';

const WORDS_PER_GROUP = 3;
const PAUSE_MS = 40;
const DURATION_MS_MAX = 1_500;

/** Streams `text` a few words at a time, within 1.5 s. The streamed text is the answer. */
export async function streamWords(task: AgentTask, text: string): Promise<undefined> {
  const words = text.match(/\s*\S+\s*/g) ?? [text];
  const pauseMs = Math.min(PAUSE_MS, DURATION_MS_MAX / (words.length / WORDS_PER_GROUP));
  for (let at = 0; at < words.length; at += WORDS_PER_GROUP) {
    if (at > 0) await delay(pauseMs, undefined, { signal: task.signal });
    await task.stream(words.slice(at, at + WORDS_PER_GROUP).join(''));
  }
}
