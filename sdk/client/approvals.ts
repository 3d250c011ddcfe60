import type { z } from 'zod';
import { type ResolveRequest, ResolveResponse } from '../../contracts/api/messages.js';
import {
  type ApprovalRecord,
  type ExportApprovalsRequest,
  ExportedApproval,
  GetApprovalsResponse,
} from '../../contracts/api/policies/approvals.js';
import { readLines } from './event-reader.js';
import type { CallOptions, PlatformApi } from './platform-api.js';

/** What an approver may add to a decision. */
export interface DecisionOptions extends CallOptions, Pick<ResolveRequest, 'comment' | 'request_id'> {}

/** Decisions of humans about waiting messages, which `messages.pending()` lists, and their audit trail. */
export class Approvals {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /**
   * Decides about what a message waits for.
   * @param answer `approved`, `rejected`, `confirmed`, `declined`, `submitted`, or a whole request with `data`, `arguments`, `comment` or
   *   `request_id`
   * @throws ApiError with `ALREADY_RESOLVED` when the question was answered before; the call is therefore not retried
   */
  resolve(messageId: string, answer: string | ResolveRequest, options: CallOptions = {}) {
    const body = typeof answer === 'string' ? { resolution: answer } : answer;
    return this.#api.post(`/messages/${encodeURIComponent(messageId)}/resolve`, body, ResolveResponse, options);
  }

  /**
   * Approves. `new_state` of the answer is `input-required` while a quorum is not reached.
   * @param options.arguments of a tool call: what is approved in place of the arguments that were asked about
   */
  approve(messageId: string, options: DecisionOptions & Pick<ResolveRequest, 'arguments'> = {}) {
    const { signal, ...given } = options;
    return this.resolve(messageId, { resolution: 'approved', ...given }, signal ? { signal } : {});
  }

  /** Rejects. Except where an agent asked, the message fails. */
  reject(messageId: string, options: DecisionOptions = {}) {
    const { signal, ...given } = options;
    return this.resolve(messageId, { resolution: 'rejected', ...given }, signal ? { signal } : {});
  }

  /** Every decision about a message, the oldest first. For its sender, or with the scope `admin`. */
  async get(messageId: string, options: CallOptions = {}): Promise<ApprovalRecord[]> {
    const body = { message_id: messageId };
    const answer = await this.#api.post('/messages/get_approvals', body, GetApprovalsResponse, {
      ...options,
      retry: true,
    });
    return answer.approvals;
  }

  /** All decisions of the tenant, the oldest first, as they arrive. Needs the scope `admin`. */
  async *export(
    range: z.input<typeof ExportApprovalsRequest> = {},
    options: CallOptions = {},
  ): AsyncGenerator<ExportedApproval> {
    const answer = await this.#api.open('/messages/export_approvals', { body: range, ...options });
    for await (const line of readLines(answer.body)) yield ExportedApproval.parse(JSON.parse(line));
  }
}
