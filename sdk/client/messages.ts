import type { z } from 'zod';
import {
  isTerminal,
  MessageCancelResponse,
  MessageGetByIdResponse,
  type MessageRecord,
  type MessagesGetRequest,
  MessagesGetResponse,
  type MessagesPendingRequest,
  MessagesPendingResponse,
} from '../../contracts/api/messages.js';
import { ApiError, isTransient } from './errors.js';
import { type CallOptions, type PlatformApi, pause } from './platform-api.js';

export interface WaitOptions extends CallOptions {
  /** `terminal`: completed, failed or canceled. `settled` (default): also `input-required`. */
  until?: 'terminal' | 'settled';
  /** Time limit in milliseconds; 600,000 by default. */
  timeoutMs?: number;
}

const POLL_FIRST_MS = 100;
const POLL_MAX_MS = 1_000;

/** `/messages/*` (specification section 4). */
export class Messages {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** One page of the tenant's messages, newest first. */
  get(request: Partial<z.infer<typeof MessagesGetRequest>> = {}, options: CallOptions = {}) {
    return this.#api.post('/messages/get', request, MessagesGetResponse, { ...options, retry: true });
  }

  async getById(messageId: string, options: CallOptions = {}): Promise<MessageRecord> {
    const body = { message_id: messageId };
    const answer = await this.#api.post('/messages/get_by_id', body, MessageGetByIdResponse, {
      ...options,
      retry: true,
    });
    return answer.message;
  }

  /** Messages that wait for a human, in one session or in all. */
  pending(request: Partial<z.infer<typeof MessagesPendingRequest>> = {}, options: CallOptions = {}) {
    return this.#api.post('/messages/pending', request, MessagesPendingResponse, { ...options, retry: true });
  }

  /** Cancels a message. @throws ApiError with `ALREADY_TERMINAL` when it has ended */
  cancel(messageId: string, options: CallOptions & { reason?: string } = {}) {
    const { reason, ...rest } = options;
    const body = { message_id: messageId, ...(reason !== undefined && { reason }) };
    return this.#api.post('/messages/cancel', body, MessageCancelResponse, rest);
  }

  /**
   * Polls the message until it has settled; temporary failures of the platform are retried.
   * @throws ApiError with code `REQUEST_TIMEOUT` when it has not settled within `timeoutMs`
   */
  async waitFor(messageId: string, options: WaitOptions = {}): Promise<MessageRecord> {
    const { until = 'settled', timeoutMs = 600_000, signal } = options;
    const deadline = Date.now() + timeoutMs;
    for (let waitMs = POLL_FIRST_MS; ; waitMs = Math.min(waitMs * 2, POLL_MAX_MS)) {
      const message = await this.getById(messageId, { signal }).catch((error: unknown) => {
        if (!isTransient(error)) throw error;
        return null;
      });
      if (message && (isTerminal(message.state) || (until === 'settled' && message.state === 'input-required')))
        return message;
      if (Date.now() >= deadline) {
        throw new ApiError(`message ${messageId} has not settled in ${timeoutMs} ms`, {
          status: 408,
          code: 'REQUEST_TIMEOUT',
        });
      }
      await pause(waitMs, signal);
    }
  }
}
