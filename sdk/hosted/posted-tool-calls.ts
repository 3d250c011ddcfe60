import { randomUUID } from 'node:crypto';
import { type ToolCallPayload, ToolResult } from '../../contracts/api/tools.js';
import { LIMITS } from '../../contracts/limits.js';
import { Backoff } from '../backoff.js';
import { isTransient, retryAfterMs } from '../client/api/errors.js';
import type { PlatformApi, PostOptions } from '../client/api/platform-api.js';
import { pause } from '../client/api/retries.js';
import type { TaskDeadline } from '../handlers/task-deadline.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import { failureOf, ToolError } from '../tools/tool-error.js';

/** Added to a call's deadline, for its answer to arrive. */
const ANSWER_MARGIN_MS = 10_000;

/** Tool calls of a hosted agent, by `POST /tools/call`. */
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
      const answer = await this.#api.post('/tools/call', body, ToolResult, { ...options, retry: true });
      return isPending(answer) ? await this.#decided(body, options) : answer;
    } catch (error) {
      signal?.throwIfAborted();
      if (!isTransient(error)) throw error;
      return failureOf(new ToolError((error as Error).message, { code: 'TARGET_UNAVAILABLE' }));
    } finally {
      resume?.();
    }
  }

  /**
   * Repeats a call that waits for a human, under its key, until it is decided. That may take days, in which the platform is restarted: what passes
   * is waited for without end.
   */
  async #decided(body: object, options: PostOptions): Promise<ToolResult> {
    for (const backoff = new Backoff(); ; ) {
      try {
        const answer = await this.#api.post('/tools/call', body, ToolResult, options);
        if (!isPending(answer)) return answer;
        backoff.reset();
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!isTransient(error)) throw error;
        await pause(backoff.next(retryAfterMs(error)), options.signal);
      }
    }
  }
}

function isPending(answer: ToolResult): boolean {
  return !answer.ok && answer.error.code === 'APPROVAL_PENDING';
}
