/** Follows all events of a tenant through every fault: after a break it continues with the last id, at any node. */
import { setTimeout as delay } from 'node:timers/promises';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { FleetClient } from '../../dist/sdk/index.js';
import { randomOf } from '../harness/cluster/pace.mjs';

const RETRY_MS = 500;
/** Two missed keep-alive comments: the connection is lost. */
const SILENCE_MS = 35_000;

export class EventFollower {
  /** Ids in the order in which they came, as often as they came. */
  ids = [];
  /** Connections that ended, and why the last one that did not end by itself. */
  breaks = 0;
  lastError;
  #access;
  #stopping = new AbortController();
  #clients;
  #loop;

  /** Resolves when the first connection is open: the follower sees what is committed from then on. */
  static async start(accessOptions) {
    const follower = new EventFollower(accessOptions);
    await new Promise((onOpen) => {
      follower.#loop = follower.#follow(onOpen);
    });
    follower.openedAtMs = Date.now();
    return follower;
  }

  constructor(accessOptions) {
    this.#access = accessOptions;
    this.#clients = accessOptions.map((options) => new FleetClient(options));
  }

  async stop() {
    this.#stopping.abort();
    await this.#loop;
    for (const client of this.#clients) client.destroy();
  }

  async #follow(onOpen) {
    while (!this.#stopping.signal.aborted) {
      const silence = new AbortController();
      try {
        await this.#readFrom(randomOf([...this.#access.keys()]), silence, onOpen);
      } catch (error) {
        // A node that was killed or ends the stream. Anything else repeats itself, and then events are missing at the end.
        if (this.#stopping.signal.aborted) return;
        this.lastError = error;
      }
      this.breaks += 1;
      await delay(RETRY_MS);
    }
  }

  async #readFrom(node, silence, onOpen) {
    const token = await this.#clients[node].token();
    const last = this.ids.at(-1);
    const response = await fetch(`${this.#access[node].url}/telemetry/stream_events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...(last && { 'last-event-id': last }) },
      signal: AbortSignal.any([this.#stopping.signal, silence.signal]),
    });
    if (!response.ok) throw new Error(`stream_events answered ${response.status}: ${await response.text()}`);
    onOpen();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const bytes = response.body.pipeThrough(
        new TransformStream({
          transform(chunk, controller) {
            clearTimeout(timer);
            timer = setTimeout(() => silence.abort(), SILENCE_MS);
            controller.enqueue(chunk);
          },
        }),
      );
      for await (const { id, event } of bytes
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new EventSourceParserStream()))
        if (event !== 'stream.closed') this.ids.push(id);
    } finally {
      clearTimeout(timer);
    }
  }
}
