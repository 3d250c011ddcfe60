import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../contracts/limits.js';
import { type ToolCallPayload, ToolResult } from '../../contracts/tools.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import { failureOf, ToolError } from '../tools/tool-error.js';
import { isTransient } from '../client/errors.js';
import type { PlatformApi } from '../client/platform-api.js';

/** Beyond a call's own deadline, for its answer to arrive. */
const SLACK_MS = 10_000;

/** Tool calls of an agent without a socket: `POST /tools/call` (decisions.md, WebSocket). */
export class PostedToolCalls implements ToolCaller {
  readonly #api: PlatformApi;
  readonly #instanceId: () => string;

  constructor(api: PlatformApi, instanceId: () => string) {
    this.#api = api;
    this.#instanceId = instanceId;
  }

  async call(given: ToolCallPayload, traceparent: string, signal: AbortSignal | undefined): Promise<ToolResult> {
    const idempotency_key = given.idempotency_key ?? randomUUID();
    const body = { ...given, idempotency_key, instance_id: this.#instanceId() };
    const options = {
      silenceMs: (given.deadline_ms ?? LIMITS.deadlineMsMax) + SLACK_MS,
      ...(traceparent !== '' && { headers: { traceparent } }),
      ...(signal && { signal }),
    };
    try {
      let answer = await this.#api.post('/tools/call', body, ToolResult, options);
      // A call that waits for a human is asked for again under its key.
      while (!answer.ok && answer.error.code === 'APPROVAL_PENDING') {
        answer = await this.#api.post('/tools/call', body, ToolResult, options);
      }
      return answer;
    } catch (error) {
      signal?.throwIfAborted();
      if (!isTransient(error)) throw error;
      return failureOf(new ToolError('TARGET_UNAVAILABLE', (error as Error).message));
    }
  }
}
