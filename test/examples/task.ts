import type { AgentTask, Question, TaskResolution } from '../../sdk/index.js';

/** A task with this text, as a handler gets it, and what the handler streams. @param resolution the answer to the question of the handler */
export function task(text: string, resolution?: TaskResolution): { task: AgentTask; streamed: string[] } {
  const streamed: string[] = [];
  const given: AgentTask = {
    text,
    parts: [],
    files: [],
    metadata: {},
    sessionId: 'ses_1',
    userId: undefined,
    remainingMs: 1_000,
    idempotencyKey: 'msg_1',
    history: async () => [],
    stateOf: async () => undefined,
    client: undefined as never,
    messageId: `msg_${text}`,
    dispatchId: 'dsp_1',
    skillId: undefined,
    data: () => Promise.reject(new Error('no input here')),
    attempt: 1,
    resolution,
    resolutions: resolution ? [resolution] : [],
    deadlineMs: 1_000,
    traceparent: '',
    signal: new AbortController().signal,
    stream: async (output) => void streamed.push(String(output)),
    status: async () => undefined,
    callTool: () => Promise.reject(new Error('no tools here')),
    search: () => Promise.reject(new Error('no knowledge here')),
    ask: ((question: Question) => ({ state: 'input-required', question })) as never,
  };
  return { task: given, streamed };
}
