import type { MessageRow } from '../read/rows.js';

/** What the end of a message has changed in its row. */
export type EndedRow = Pick<
  MessageRow,
  'state' | 'instance_id' | 'agent_type' | 'error_code' | 'error_message' | 'updated_at' | 'completed_at'
> &
  Partial<Pick<MessageRow, 'artifacts' | 'usage' | 'status_message'>>;

/** The end of one message, once this process has written it. */
export interface LocalEnd extends Disposable {
  ended?: EndedRow;
}

/** Ends of messages that this process writes, for its callers that wait for them: they need not read the row. */
export class LocalEnds {
  readonly #awaited = new Map<string, LocalEnd>();

  /** One caller at a time follows a message: the one that has it accepted. */
  follow(messageId: string): LocalEnd {
    const end: LocalEnd = { [Symbol.dispose]: () => void this.#awaited.delete(messageId) };
    this.#awaited.set(messageId, end);
    return end;
  }

  /** Called after the commit, before the bus tells of the change. */
  note(messageId: string, ended: EndedRow): void {
    const awaited = this.#awaited.get(messageId);
    if (awaited) awaited.ended = ended;
  }
}
