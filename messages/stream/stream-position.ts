import { asksPerson } from '../../contracts/message-states.js';
import type { MessageRef } from '../core.js';
import type { MessageWithRequest } from '../read/read.js';
import { ShownArtifacts } from './shown-artifacts.js';

const STATE_LETTERS = {
  submitted: 's',
  working: 'w',
  'input-required': 'i',
  completed: 'c',
  failed: 'f',
  canceled: 'x',
};
/** The state key of a reader that has the final task, but not yet the status update with `final: true`. */
const AT_END = '-';
const TAG_CHARS = 8;
const CURSOR_CHARS_MAX = 1_024;
const CURSOR = /^([0-9a-z]+)\.(\d{1,15})\.([swcfx-]|i[0-9a-z]*)((?:\.[0-9a-z]+)*)$/;

/** The last characters of an id, which are random: enough to distinguish messages, or the requests of one message. */
function tagOf(id: string): string {
  return id.slice(-TAG_CHARS).toLowerCase();
}

/** The state in a cursor. Two input requests of a message are two states. */
function stateKeyOf({ row, request }: MessageWithRequest): string {
  return STATE_LETTERS[row.state] + (asksPerson(row.state) && request ? tagOf(request.request_id) : '');
}

/**
 * The position of a reader in a message's stream. Any node can continue exactly after it. Its cursor is the SSE id: the message, the bus
 * cursor, the last state that was sent, and a digest of each artifact that was sent.
 */
export class StreamPosition {
  readonly #tag: string;
  #stateKey = AT_END;

  private constructor(
    message: MessageRef,
    /** The bus cursor of the last event that was sent; 0 for none. */
    public busCursor: number,
    public shown: ShownArtifacts,
  ) {
    this.#tag = tagOf(message.message_id);
  }

  /** The position after the task. @param isOver the message has ended, and the final status update follows */
  static afterTask(ref: MessageRef, busCursor: number, current: MessageWithRequest, isOver: boolean): StreamPosition {
    const position = new StreamPosition(ref, busCursor, new ShownArtifacts());
    for (const artifact of current.row.artifacts) position.shown.show(artifact, false);
    if (!isOver) position.noteState(current);
    return position;
  }

  /** The position of a cursor; null when it is not a cursor of this message. */
  static parse(message: MessageRef, cursor: string): StreamPosition | null {
    if (cursor.length > CURSOR_CHARS_MAX) return null;
    const [, tag, busCursor, stateKey, notes = ''] = CURSOR.exec(cursor) ?? [];
    if (tag !== tagOf(message.message_id)) return null;
    const shown = ShownArtifacts.parse(notes.split('.').slice(1));
    if (!shown) return null;
    const position = new StreamPosition(message, Number(busCursor), shown);
    position.#stateKey = stateKey ?? AT_END;
    return position;
  }

  /** The reader has the task of a message that had ended, and nothing since. */
  get isAtEnd(): boolean {
    return this.#stateKey === AT_END;
  }

  /** Whether the reader has this state. */
  hasState(current: MessageWithRequest): boolean {
    return this.#stateKey === stateKeyOf(current);
  }

  /** To be called when the state is sent to the reader. */
  noteState(current: MessageWithRequest): void {
    this.#stateKey = stateKeyOf(current);
  }

  get cursor(): string {
    return [this.#tag, this.busCursor, this.#stateKey, ...this.shown.notes()].join('.');
  }
}
