import type { CallOptions } from '../api/platform-api.js';
import { MessagesOperations } from '../generated/operations.js';
import type { MessageRecord } from '../generated/schema-types.js';
import { isEnd } from '../send/sent-task.js';
import { untilSettled, type WaitOptions } from './until-settled.js';

/** `/messages/*`, and waits for a message. */
export class WaitingMessages extends MessagesOperations {
  /**
   * Polls the message until it has ended, or by default until it has settled: also when it waits for a human. Temporary failures of the
   * platform are passed over.
   * @throws ApiError with code `REQUEST_TIMEOUT` when that has not happened within `timeoutMs`
   */
  waitFor(messageId: string, { until = 'settled', ...options }: WaitOptions = {}): Promise<MessageRecord> {
    const isOver = (state: string) => isEnd(state) || (until === 'settled' && state === 'input-required');
    return this.#wait(messageId, isOver, options);
  }

  /**
   * Polls the message until it has ended, through every question that humans are asked meanwhile, for days if need be.
   * @throws ApiError with code `REQUEST_TIMEOUT` when that has not happened within `timeoutMs`, where it is given
   */
  waitForEnd(messageId: string, options: Omit<WaitOptions, 'until'> = {}): Promise<MessageRecord> {
    return this.#wait(messageId, isEnd, { timeoutMs: Number.POSITIVE_INFINITY, ...options });
  }

  /** Polls the message until it does not wait for a human, for days if need be. */
  waitForAnswer(messageId: string, options: CallOptions = {}): Promise<MessageRecord> {
    return this.#wait(messageId, (state) => state !== 'input-required', {
      timeoutMs: Number.POSITIVE_INFINITY,
      ...options,
    });
  }

  #wait(messageId: string, isOver: (state: string) => boolean, options: Omit<WaitOptions, 'until'>) {
    const read = async (call: CallOptions) => (await this.getById({ messageId }, call)).message;
    return untilSettled(`message ${messageId}`, read, ({ state }) => isOver(state), options);
  }
}
