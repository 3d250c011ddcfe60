import type { MessageState } from '../../contracts/messages.js';
import type { MessageRef } from '../core.js';
import type { MessageWithRequest } from '../read/read.js';
import { ShownArtifacts } from './shown-artifacts.js';

/** One letter for each state, in cursors. */
const STATE_LETTERS: Record<MessageState, string> = {
  submitted: 's',
  working: 'w',
  'input-required': 'i',
  completed: 'c',
  failed: 'f',
  canceled: 'x',
};
/** In place of a state: the task was given as it ended, and that it has is still to be said. */
const AT_END = '-';
const TAG_CHARS = 8;
const CURSOR_CHARS_MAX = 1_024;
const CURSOR = /^([0-9a-z]+)\.(\d{1,15})\.([swcfx-]|i[0-9a-z]*)((?:\.[0-9a-z]+)*)$/;

/** The end of an id, which is random: enough to tell ids of one message, or messages, apart. */
function tagOf(id: string): string {
  return id.slice(-TAG_CHARS).toLowerCase();
}

/** The state of a message as a reader knows it: two questions to a human are two states. */
function standOf({ row, request }: MessageWithRequest): string {
  return STATE_LETTERS[row.state] + (row.state === 'input-required' && request ? tagOf(request.request_id) : '');
}

/**
 * How far the reader of a message's stream has come: what it has been told, so that any node can go on exactly after it. Its cursor is
 * the SSE id: the message, the place on the bus, the state that was said, what is shown of each artifact.
 */
export class StreamFollower {
  readonly #tag: string;
  #stand = AT_END;

  private constructor(
    message: MessageRef,
    /** The bus's cursor of the last event that was told; 0: none. */
    public position: number,
    public shown: ShownArtifacts,
  ) {
    this.#tag = tagOf(message.message_id);
  }

  /** The place of one who has the task as it is. `over`: that it has ended is still to be said. */
  static atTask(message: MessageRef, position: number, current: MessageWithRequest, over: boolean): StreamFollower {
    const place = new StreamFollower(message, position, new ShownArtifacts());
    for (const artifact of current.row.artifacts) place.shown.show(artifact, false);
    if (!over) place.say(current);
    return place;
  }

  /** The place that `cursor` stands for; null when it is none of this message. */
  static read(message: MessageRef, cursor: string): StreamFollower | null {
    if (cursor.length > CURSOR_CHARS_MAX) return null;
    const [, tag, position, stand, notes = ''] = CURSOR.exec(cursor) ?? [];
    if (tag !== tagOf(message.message_id)) return null;
    const shown = ShownArtifacts.read(notes.split('.').slice(1));
    if (!shown) return null;
    const place = new StreamFollower(message, Number(position), shown);
    place.#stand = stand ?? AT_END;
    return place;
  }

  /** The reader was given the task of a message that was over, and nothing since. */
  get beganAtEnd(): boolean {
    return this.#stand === AT_END;
  }

  /** Whether the reader has been told this state. */
  knows(current: MessageWithRequest): boolean {
    return this.#stand === standOf(current);
  }

  /** The reader is told this state. */
  say(current: MessageWithRequest): void {
    this.#stand = standOf(current);
  }

  get cursor(): string {
    return [this.#tag, this.position, this.#stand, ...this.shown.notes()].join('.');
  }
}
