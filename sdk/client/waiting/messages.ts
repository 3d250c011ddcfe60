import { MessagesOperations } from '../generated/operations.js';
import type { MessageRecord } from '../generated/schema-types.js';
import { untilSettled, type WaitOptions } from './until-settled.js';

/** `/messages/*`, and a wait for a message. */
export class WaitingMessages extends MessagesOperations {
  /**
   * Polls the message until it has ended, or by default until it has settled: also when it waits for a human. Temporary failures of the
   * platform are passed over.
   * @throws ApiError with code `REQUEST_TIMEOUT` when that has not happened within `timeoutMs`
   */
  waitFor(messageId: string, options: WaitOptions = {}): Promise<MessageRecord> {
    const resting = ['completed', 'failed', 'canceled', ...(options.until === 'terminal' ? [] : ['input-required'])];
    const read = async (call: WaitOptions) => (await this.getById({ messageId }, call)).message;
    return untilSettled(`message ${messageId}`, read, ({ state }) => resting.includes(state), options);
  }
}
