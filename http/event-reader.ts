import { createParser } from 'eventsource-parser';
import { LIMITS } from '../contracts/limits.js';

/** Of one stream. */
const EVENTS_MAX = 100_000;
/** Lines of one stream that are no field of an event; the parser makes an error with a stack trace for each. */
const UNKNOWN_LINES_MAX = 1_000;
const TOO_LARGE = 'holds an event larger than 1 MiB';

/** The `data` of server-sent events in a hostile stream of bytes. */
export class EventReader {
  /** Why the stream is not to be read any further; undefined while nothing is wrong with it. */
  problem: string | undefined;
  readonly #decoder = new TextDecoder();
  readonly #parser = createParser({
    maxBufferSize: LIMITS.frameBytes, // in UTF-16 units
    onEvent: ({ data }) => this.#add(data),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') this.#refuse(TOO_LARGE);
      else if (++this.#unknownLines > UNKNOWN_LINES_MAX)
        this.#refuse(`holds more than ${UNKNOWN_LINES_MAX} lines that are no event stream's`);
    },
  });
  #events: string[] = [];
  #eventCount = 0;
  #unknownLines = 0;
  #endedInCr = false;

  /** Takes the next bytes and gives the data of the events that they complete, up to where a problem is. */
  read(bytes: Uint8Array): string[] {
    this.#events = [];
    if (this.problem !== undefined) return [];
    try {
      this.#parser.feed(this.#decode(bytes));
    } catch (error) {
      if (this.problem === undefined) throw error;
    }
    return this.#events;
  }

  /**
   * Lines end in LF alone from here on: the parser takes quadratic time for a chunk of many lines with one CR behind them, and holds back
   * a line that ends in CR until the next line ends.
   */
  #decode(bytes: Uint8Array): string {
    const text = this.#decoder.decode(bytes, { stream: true });
    if (text === '' || (!this.#endedInCr && !text.includes('\r'))) return text;
    const rest = this.#endedInCr && text.startsWith('\n') ? text.slice(1) : text;
    this.#endedInCr = text.endsWith('\r');
    return rest.replaceAll(/\r\n?/g, '\n');
  }

  #add(data: string): void {
    if (data.length > LIMITS.frameBytes) this.#refuse(TOO_LARGE);
    if (++this.#eventCount > EVENTS_MAX) this.#refuse(`holds more than ${EVENTS_MAX} events`);
    this.#events.push(data);
  }

  /** Stops the parser in the middle of its input. */
  #refuse(problem: string): never {
    this.problem = problem;
    throw new Error(problem);
  }
}
