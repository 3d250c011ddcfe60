import { EventSourceParserStream } from 'eventsource-parser/stream';
import { PlatformEvent } from '../../contracts/api/telemetry.js';
import { cleanUp } from '../setup/clean-up.js';
import { until } from '../setup/until.js';

/** An event as it was on the wire. */
interface Received {
  id: string | undefined;
  event: string | undefined;
  data: string;
}

/** How a stream is asked for. */
export interface StreamCall {
  method?: 'GET' | 'POST';
  body?: object;
  query?: Record<string, string>;
  headers?: Record<string, string>;
}

/** A reader of `/telemetry/stream_events`. */
export class EventFollower {
  readonly received: Received[] = [];
  /** Resolves when the stream ends, or the reader has left. */
  readonly done: Promise<void>;
  readonly #leaving: AbortController;

  private constructor(response: Response, leaving: AbortController, onEvent: (event: Received) => void) {
    this.#leaving = leaving;
    this.done = this.#read(response, onEvent);
    this.done.catch(() => undefined); // a platform that ends cuts the stream off, perhaps before anybody waits for its end
  }

  /** Opens a stream, which is left after the test or the file. @throws Error with the status and the code of a refusal */
  static async open(
    baseUrl: string,
    token: string,
    { method = 'POST', body, query = {}, headers = {} }: StreamCall = {},
    onEvent: (event: Received) => void = () => undefined,
  ): Promise<EventFollower> {
    const leaving = new AbortController();
    cleanUp(() => leaving.abort());
    const url = new URL('/telemetry/stream_events', baseUrl);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const json = body && { 'content-type': 'application/json' };
    const response = await fetch(url, {
      method,
      headers: { authorization: `Bearer ${token}`, ...json, ...headers },
      body: body ? JSON.stringify(body) : null,
      signal: leaving.signal,
    });
    if (response.status !== 200) {
      const { code } = (await response.json()) as { code: string };
      throw new Error(`${response.status} ${code}`);
    }
    return new EventFollower(response, leaving, onEvent);
  }

  /** The events of the platform, without what the stream says of itself. */
  get records(): PlatformEvent[] {
    return this.received
      .filter(({ event }) => event !== 'stream.closed')
      .map(({ data }) => PlatformEvent.parse(JSON.parse(data)));
  }

  get ids(): string[] {
    return this.records.map(({ event_id }) => event_id);
  }

  get closed(): unknown {
    const last = this.received.at(-1);
    return last?.event === 'stream.closed' ? JSON.parse(last.data) : undefined;
  }

  /** Waits for so many events. */
  async has(count: number): Promise<void> {
    await until(() => this.received.length >= count, { what: `${count} events` });
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.done;
  }

  async #read(response: Response, onEvent: (event: Received) => void): Promise<void> {
    const events = response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    try {
      for await (const { id, event, data } of events ?? []) {
        this.received.push({ id, event, data });
        onEvent({ id, event, data });
      }
    } catch (error) {
      if (!this.#leaving.signal.aborted) throw error;
    }
  }
}
