import type { A2aMessage } from '../../contracts/a2a/a2a.js';
import type { Artifact } from '../../contracts/a2a/parts.js';
import type { MessageState, MessageUsage } from '../../contracts/api/messages.js';

/** What the end of a message has changed in its row. */
export interface EndedRow {
  state: MessageState;
  instance_id: string | null;
  agent_type: string | null;
  error_code: string | null;
  error_message: string | null;
  updated_at: Date;
  completed_at: Date | null;
  artifacts?: Artifact[];
  usage?: MessageUsage | null;
  status_message?: A2aMessage | null;
}

/** The end of one message, once this process has written it. */
export interface LocalEnd extends Disposable {
  ended?: EndedRow;
}

/** Forgets a call that has ended, unless a later one has taken its place. */
function forget<Entry>(entries: Map<string, Entry>, messageId: string, own: Entry): void {
  if (entries.get(messageId) === own) entries.delete(messageId);
}

/** What this process itself writes about a message for which one of its calls waits. So the call need not read the row, or wait for the bus. */
export class LocalChanges {
  readonly #awaited = new Map<string, LocalEnd>();
  readonly #onHeld = new Map<string, () => void>();

  /** The latest call that follows a message is told. Any other reads the row. */
  follow(messageId: string): LocalEnd {
    const end: LocalEnd = { [Symbol.dispose]: () => forget(this.#awaited, messageId, end) };
    this.#awaited.set(messageId, end);
    return end;
  }

  /** Called after the commit, before the bus tells of the change. */
  note(messageId: string, ended: EndedRow): void {
    const awaited = this.#awaited.get(messageId);
    if (awaited) awaited.ended = ended;
  }

  /** Calls `wake` at the next `noteToolRequest`: the caller then reads the row. One caller at a time, as in `follow`. */
  onToolRequest(messageId: string, wake: () => void): Disposable {
    this.#onHeld.set(messageId, wake);
    return { [Symbol.dispose]: () => forget(this.#onHeld, messageId, wake) };
  }

  /** Called after the commit: a request about a tool call was opened or withdrawn, or has failed the message. */
  noteToolRequest(messageId: string): void {
    this.#onHeld.get(messageId)?.();
  }
}
