import { type ResolveRequest, ResolveResponse } from '../../contracts/messages.js';
import type { CallOptions, PlatformApi } from './platform-api.js';

/** The answers of humans. What waits for one: `messages.pending()`. */
export class Approvals {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /**
   * Answers what a message waits for: `approved`, `rejected`, `confirmed`, `declined`, `submitted`, or the whole request with
   * `data`, `comment` or the `request_id`. Not repeated: a second answer is an `ApiError` with `ALREADY_RESOLVED`.
   */
  resolve(messageId: string, answer: string | ResolveRequest, options: CallOptions = {}) {
    const body = typeof answer === 'string' ? { resolution: answer } : answer;
    return this.#api.post(`/messages/${encodeURIComponent(messageId)}/resolve`, body, ResolveResponse, options);
  }
}
