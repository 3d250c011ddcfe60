import { LIMITS } from '../contracts/limits.js';

/** Of one stream, comments and blank lines included. */
const LINES_MAX = 1_000_000;
/** Of one stream. */
const EVENTS_MAX = 100_000;

/**
 * The `data` of server-sent events in a stream of bytes; comments and other fields are passed over. Its work grows with the
 * bytes alone, however they are cut: each is looked at once, and a line is put together when it is complete.
 */
export class EventReader {
  readonly #decoder = new TextDecoder();
  /** Of the line that is not complete. */
  #pieces: string[] = [];
  /** The lines of data of the event that is not complete. */
  #data: string[] = [];
  #piecesChars = 0;
  #dataChars = 0;
  #lines = 0;
  #events = 0;
  #endedInCr = false;

  /** Why the stream is not to be read any further; undefined while all is well. Sizes are in UTF-16 units. */
  get problem(): string | undefined {
    if (this.#piecesChars + this.#dataChars > LIMITS.frameBytes) return 'holds an event larger than 1 MiB';
    if (this.#lines > LINES_MAX) return `holds more than ${LINES_MAX} lines`;
    return this.#events > EVENTS_MAX ? `holds more than ${EVENTS_MAX} events` : undefined;
  }

  /** Takes the next bytes and gives the data of the events that they complete, up to where a problem is. */
  read(bytes: Uint8Array): string[] {
    const lines = this.#decode(bytes).split(/\r\n|\r|\n/);
    const rest = lines.pop() ?? '';
    const events: string[] = [];
    for (const line of lines) {
      this.#addPiece(line);
      const data = this.#endLine();
      if (this.problem !== undefined) return events;
      if (data !== undefined) events.push(data);
    }
    this.#addPiece(rest);
    return events;
  }

  /** The next text, without the second half of a line's end whose first half ended the text before. */
  #decode(bytes: Uint8Array): string {
    const text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return text;
    const halved = this.#endedInCr && text.startsWith('\n');
    this.#endedInCr = text.endsWith('\r');
    return halved ? text.slice(1) : text;
  }

  #addPiece(piece: string): void {
    if (piece === '') return;
    this.#pieces.push(piece);
    this.#piecesChars += piece.length;
  }

  /** Gives the data of the event that a blank line completes. */
  #endLine(): string | undefined {
    const line = this.#pieces.join('');
    this.#pieces = [];
    this.#piecesChars = 0;
    this.#lines += 1;
    if (line === '') return this.#endEvent();
    if (line === 'data' || line.startsWith('data:')) {
      const value = line.slice(line.startsWith('data: ') ? 6 : 5);
      this.#data.push(value);
      this.#dataChars += value.length + 1;
    }
    return undefined;
  }

  #endEvent(): string | undefined {
    if (this.#data.length === 0) return undefined;
    const data = this.#data.join('\n');
    this.#data = [];
    this.#dataChars = 0;
    this.#events += 1;
    return data;
  }
}
