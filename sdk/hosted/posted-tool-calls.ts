import { randomUUID } from 'node:crypto';
import { type ToolCallPayload, ToolResult } from '../../contracts/api/tools.js';
import { LIMITS } from '../../contracts/limits.js';
import { isTransient } from '../client/api/errors.js';
import type { PlatformApi } from '../client/api/platform-api.js';
import type { TaskDeadline } from '../handlers/task-deadline.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import { failureOf, ToolError } from '../tools/tool-error.js';

/** Added to a call's deadline, for its answer to arrive. */
const ANSWER_MARGIN_MS = 10_000;

/** Tool calls of a hosted agent, by `POST /tools/call` (decisions.md, WebSocket). */
export class PostedToolCalls implements ToolCaller {
  readonly #api: PlatformApi;
  readonly #instanceId: () => string;

  constructor(api: PlatformApi, instanceId: () => string) {
    this.#api = api;
    this.#instanceId = instanceId;
  }

  async call(
    payload: ToolCallPayload,
    traceparent: string,
    signal: AbortSignal | undefined,
    deadline?: TaskDeadline,
  ): Promise<ToolResult> {
    const idempotency_key = payload.idempotency_key ?? randomUUID();
    const body = { ...payload, idempotency_key, instance_id: this.#instanceId() };
    const options = {
      silenceMs: (payload.deadline_ms ?? LIMITS.deadlineMsMax) + ANSWER_MARGIN_MS,
      ...(traceparent !== '' && { headers: { traceparent } }),
      ...(signal && { signal }),
    };
    // Whether a human is asked is known only later. The platform ends a call that takes longer than the task may.
    const resume = deadline?.pause();
    try {
      let answer = await this.#api.post('/tools/call', body, ToolResult, options);
      // The call waits for a human: repeat it with the same key until it is decided.
      while (!answer.ok && answer.error.code === 'APPROVAL_PENDING') {
        answer = await this.#api.post('/tools/call', body, ToolResult, options);
      }
      return answer;
    } catch (error) {
      signal?.throwIfAborted();
      if (!isTransient(error)) throw error;
      return failureOf(new ToolError((error as Error).message, { code: 'TARGET_UNAVAILABLE' }));
    } finally {
      resume?.();
    }
  }
}
