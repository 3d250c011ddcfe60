import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { StreamEvent } from '../../contracts/a2a/a2a.js';
import type { Artifact } from '../../contracts/a2a/parts.js';
import type { ApiClient } from './platform/api-client.js';
import { until } from './until.js';

/** An event with its SSE id. */
export interface NumberedEvent {
  id: string;
  event: StreamEvent;
}

/** A reader of one stream of `/send`, over plain HTTP. */
export class StreamReader {
  readonly seen: NumberedEvent[] = [];
  /** Resolves when the stream ends, also when it breaks; rejects with what was answered in place of a stream. */
  readonly done: Promise<void>;
  /** The connection broke before the stream's end. */
  broken = false;
  readonly #leaving = new AbortController();

  /** @param method `message/stream` or `tasks/resubscribe`, with its params */
  constructor(client: ApiClient, method: string, params: object, lastEventId?: string) {
    this.done = this.#read(client, method, params, lastEventId);
    this.done.catch(() => undefined); // whoever awaits it is told
  }

  get events(): StreamEvent[] {
    return this.seen.map(({ event }) => event);
  }

  get lastEventId(): string | undefined {
    return this.seen.at(-1)?.id;
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.done;
  }

  /** Waits for so many events. */
  async has(count: number): Promise<void> {
    await until(() => this.seen.length >= count, { what: `${count} events` });
  }

  async #read(client: ApiClient, method: string, params: object, lastEventId: string | undefined): Promise<void> {
    const response = await fetch(new URL('/send', client.baseUrl), {
      method: 'POST',
      headers: { ...(await client.headers()), ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: this.#leaving.signal,
    });
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) throw new Error(await response.text());
    const body = response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    try {
      for await (const { id = '', data } of body ?? []) {
        this.seen.push({ id, event: (JSON.parse(data) as { result: StreamEvent }).result });
      }
    } catch {
      this.broken = true; // its reader left, or its server died
    }
  }
}

/** The text of each artifact that a client has who puts together what it is told. @throws where something is appended to nothing */
export function assembled(events: StreamEvent[]): Map<string, string> {
  const artifacts = new Map<string, string>();
  const text = ({ parts }: Artifact) => parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
  for (const event of events) {
    if (event.kind === 'task') artifacts.clear();
    for (const artifact of event.kind === 'task' ? (event.artifacts ?? []) : []) {
      artifacts.set(artifact.artifactId, text(artifact));
    }
    if (event.kind !== 'artifact-update') continue;
    const before = event.append ? artifacts.get(event.artifact.artifactId) : '';
    if (before === undefined) throw new Error(`nothing to append to: ${JSON.stringify(event)}`);
    artifacts.set(event.artifact.artifactId, before + text(event.artifact));
  }
  return artifacts;
}
