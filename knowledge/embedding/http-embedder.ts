import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { Outbound, OutboundResponse } from '../../http/outbound.js';
import { OutboundError } from '../../http/outbound-error.js';
import { PlatformError } from '../../runtime/errors.js';
import type { Embedder } from '../embedder.js';
import { type Lane, LaneQueue } from './lanes.js';
import { unitVector } from './vectors.js';

/** Texts of one request, and their characters together. Providers bound both; a text that is longer alone goes alone. */
const BATCH_TEXTS = 64;
const BATCH_CHARS = 100_000;
/** Requests at once, and requests that wait for their turn in one lane: beyond that the caller is refused. */
const CONCURRENCY = 4;
const WAITING_MAX = 1_000;
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 500;
/** The longest pause that a provider may ask for with `Retry-After`; beyond it the call fails at once. */
const PAUSE_MAX_MS = 20_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** 64 vectors of 4,096 dimensions as JSON, with room. */
const RESPONSE_MAX_BYTES = 16 * 1024 * 1024;

const DIMENSIONS_MAX = 8_192;

/** Checked in one loop: a schema takes longer for its hundred thousands of numbers than parsing them. */
function isEmbedding(value: unknown): value is number[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > DIMENSIONS_MAX) return false;
  return value.every((one) => typeof one === 'number');
}

const Answer = z.object({
  data: z.array(z.object({ index: z.int().min(0).optional(), embedding: z.custom<number[]>(isEmbedding) })),
});

/** An OpenAI-compatible endpoint for embeddings. */
export interface EmbeddingsEndpoint {
  /** Its address up to `/v1`, or up to `/embeddings`. */
  url: string;
  apiKey?: string | undefined;
  model: string;
}

function batches(texts: readonly string[]): string[][] {
  const result: string[][] = [];
  let chars = 0;
  for (const text of texts) {
    const last = result.at(-1);
    chars += text.length;
    if (last && last.length < BATCH_TEXTS && chars <= BATCH_CHARS) last.push(text);
    else {
      result.push([text]);
      chars = text.length;
    }
  }
  return result;
}

function badGateway(reason: string, cause?: unknown): PlatformError {
  return new PlatformError('BAD_GATEWAY', `The embeddings provider failed: ${reason}.`, { cause });
}

/** Waits as long as the provider asks, else twice as long each time. Undefined when it asks for more than the bound. */
function pauseMs(attempt: number, response: OutboundResponse | undefined): number | undefined {
  const asked = Number(response?.headers['retry-after'] ?? Number.NaN) * 1_000;
  if (!Number.isFinite(asked) || asked < 0) return FIRST_PAUSE_MS * 2 ** (attempt - 1);
  return asked <= PAUSE_MAX_MS ? asked : undefined;
}

const isRetried = (status: number): boolean => status === 429 || status >= 500;

/**
 * Embeds by an OpenAI-compatible endpoint, in batches, with a bounded number of requests at once, the more urgent first. Requests that get 429, 5xx or no answer are
 * repeated up to three times.
 */
export class HttpEmbedder implements Embedder {
  readonly kind = 'http';
  readonly model: string;
  readonly #url: string;
  readonly #headers: Record<string, string>;
  /** Requests that wait for their turn. */
  readonly #queue = new LaneQueue<() => void>();
  #running = 0;
  #dimensions = 0;

  /** @param outbound must be allowed to reach the operator's own networks */
  constructor(
    endpoint: EmbeddingsEndpoint,
    private readonly outbound: Pick<Outbound, 'request'>,
    private readonly firstPauseMs: number = FIRST_PAUSE_MS,
  ) {
    const base = endpoint.url.replace(/\/+$/, '');
    this.model = endpoint.model;
    this.#url = base.endsWith('/embeddings') ? base : `${base}/embeddings`;
    this.#headers = {
      'content-type': 'application/json',
      ...(endpoint.apiKey && { authorization: `Bearer ${endpoint.apiKey}` }),
    };
  }

  /** 0 until the provider has answered once. */
  get dimensions(): number {
    return this.#dimensions;
  }

  /** @throws PlatformError `BAD_GATEWAY` when the provider fails or its answer cannot be used, `RATE_LIMITED` when too many texts wait */
  async embed(texts: readonly string[], signal: AbortSignal, lane: Lane = 'bulk'): Promise<Float32Array[]> {
    const parts = batches(texts);
    if (this.#queue.waiting(lane) + parts.length > WAITING_MAX)
      throw new PlatformError('RATE_LIMITED', 'Too many texts wait to be embedded.', {
        headers: { 'Retry-After': '5' },
      });
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    try {
      const vectors = parts.map((part) => this.#inTurn(lane, () => this.#embedBatch(part, either)));
      return (await Promise.all(vectors)).flat();
    } catch (error) {
      failed.abort(); // what the other batches would bring is of no use
      throw error;
    }
  }

  /** Runs a request in its turn. */
  async #inTurn<T>(lane: Lane, work: () => Promise<T>): Promise<T> {
    if (this.#running < CONCURRENCY) this.#running += 1;
    else await new Promise<void>((resolve) => this.#queue.push(lane, [resolve]));
    try {
      return await work();
    } finally {
      // The place goes to the next request, or is free.
      const next = this.#queue.next();
      if (next) next();
      else this.#running -= 1;
    }
  }

  async #embedBatch(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
    const body = JSON.stringify({ model: this.model, input: texts, encoding_format: 'float' });
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted();
      const response = await this.#post(body, signal, attempt);
      if (response && response.status === 200) return this.#vectors(response, texts.length);
      if (response && !isRetried(response.status)) throw badGateway(`it answered ${response.status}`);
      const pause = pauseMs(attempt, response);
      if (attempt === ATTEMPTS || pause === undefined)
        throw badGateway(response ? `it answered ${response.status}` : 'it did not answer');
      await delay(pause * (this.firstPauseMs / FIRST_PAUSE_MS), undefined, { signal });
    }
  }

  /** @returns undefined when there was no whole answer and another attempt may bring one */
  async #post(body: string, signal: AbortSignal, attempt: number): Promise<OutboundResponse | undefined> {
    try {
      return await this.outbound.request(this.#url, {
        method: 'POST',
        headers: this.#headers,
        body,
        signal,
        timeoutMs: REQUEST_TIMEOUT_MS,
        maxResponseBytes: RESPONSE_MAX_BYTES,
      });
    } catch (error) {
      signal.throwIfAborted();
      const passes = error instanceof OutboundError && ['CONNECT_FAILED', 'TIMEOUT', 'BROKEN'].includes(error.code);
      if (!passes || attempt === ATTEMPTS) throw badGateway((error as Error).message, error);
      return undefined;
    }
  }

  #vectors(response: OutboundResponse, count: number): Float32Array[] {
    const answer = Answer.safeParse(response.truncated ? null : parsed(response.body));
    if (!answer.success) throw badGateway('its answer has no embeddings');
    const found = answer.data.data.toSorted((one, other) => (one.index ?? 0) - (other.index ?? 0));
    if (found.length !== count) throw badGateway(`it answered ${found.length} embeddings for ${count} texts`);
    return found.map(({ embedding }) => {
      if (this.#dimensions === 0) this.#dimensions = embedding.length;
      if (embedding.length !== this.#dimensions)
        throw badGateway(`an embedding has ${embedding.length} dimensions instead of ${this.#dimensions}`);
      const vector = unitVector(embedding);
      if (!vector) throw badGateway('an embedding has no direction');
      return vector;
    });
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return null; // not JSON: the caller reports an answer without embeddings
  }
}
