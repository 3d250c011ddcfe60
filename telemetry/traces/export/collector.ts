import { z } from 'zod';
import type { Config } from '../../../runtime/config.js';
import { errorMessage } from '../../../runtime/errors.js';
import { type ExportedSpan, exportRequest } from './otlp.js';

/** Makes a request to the collector. Rejects where no answer comes in time. */
export type PostToCollector = (
  url: string,
  request: { method: 'POST'; headers: Record<string, string>; body: string; timeoutMs: number; signal: AbortSignal },
) => Promise<{ status: number; headers: Record<string, string>; body: Buffer }>;

/** The collector is away, asks for a pause, or is not the one that was meant. */
export interface Later {
  kind: 'later';
  reason: string;
  /** At least so long, in milliseconds. */
  afterMs: number;
  /** Whether a smaller request may do better: nobody answered this one in time. */
  mayBeTooMuch: boolean;
}

/**
 * `taken`: except for `rejected` spans, which it will never take, and does not name. `refused`: the request as a whole; `isFault` where the
 * collector says that it is its own.
 */
export type Delivery =
  | { kind: 'taken'; rejected: number; reason?: string | undefined }
  | { kind: 'refused'; reason: string; isFault: boolean }
  | Later;

/**
 * The statuses with which a collector asks for the same request again (OTLP over HTTP), and those that say that the setting is wrong, such as a
 * token that has expired: the record keeps the traces until it is right.
 */
const RETRIED = new Set([401, 403, 404, 405, 408, 429, 502, 503, 504]);

/** The statuses of those who gave up waiting for an answer. */
const TIMED_OUT = new Set([408, 504]);

/** The part of `ExportTraceServiceResponse` that says what was left out. 64-bit integers are text in the JSON of OTLP. */
const PartialSuccess = z.object({
  partialSuccess: z.object({
    rejectedSpans: z.coerce.number().int().min(0).default(0),
    errorMessage: z.string().optional(),
  }),
});

/** What a collector that took a request says of it. Many say nothing, or not in JSON. */
function taken(body: Buffer, sent: number): Delivery {
  const { data } = PartialSuccess.safeParse(jsonOf(body.toString()));
  if (!data) return { kind: 'taken', rejected: 0 };
  const { rejectedSpans, errorMessage: reason } = data.partialSuccess;
  return { kind: 'taken', rejected: Math.min(rejectedSpans, sent), reason };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export type CollectorSettings = Pick<
  Config,
  | 'OTEL_EXPORTER_OTLP_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_HEADERS'
  | 'OTEL_EXPORTER_OTLP_TIMEOUT'
  | 'OTEL_SERVICE_NAME'
  | 'OTEL_RESOURCE_ATTRIBUTES'
>;

/** Where traces are exported to; undefined where nothing is configured. */
export function tracesUrl(config: CollectorSettings): string | undefined {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces, OTEL_EXPORTER_OTLP_ENDPOINT: base } = config;
  return traces ?? (base && `${base.replace(/\/+$/, '')}/v1/traces`);
}

/** An OpenTelemetry collector, or a backend that speaks its protocol: OTLP over HTTP, with JSON. */
export class Collector {
  readonly timeoutMs: number;
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #resource: Record<string, string>;
  readonly #version: string;
  readonly #post: PostToCollector;

  constructor(url: string, config: CollectorSettings, version: string, post: PostToCollector) {
    this.#url = url;
    this.#version = version;
    this.#post = post;
    this.timeoutMs = config.OTEL_EXPORTER_OTLP_TIMEOUT;
    this.#headers = { ...config.OTEL_EXPORTER_OTLP_HEADERS, 'content-type': 'application/json' };
    const named = config.OTEL_SERVICE_NAME && { 'service.name': config.OTEL_SERVICE_NAME };
    this.#resource = {
      'service.name': 'agent-fleet',
      'service.version': version,
      ...config.OTEL_RESOURCE_ATTRIBUTES,
      ...named,
    };
  }

  /** Sends spans once. Rejects only with the reason of the signal. */
  async send(spans: readonly ExportedSpan[], signal: AbortSignal): Promise<Delivery> {
    const body = JSON.stringify(exportRequest(spans, this.#resource, this.#version));
    const request = { method: 'POST' as const, headers: this.#headers, body, timeoutMs: this.timeoutMs, signal };
    try {
      const { status, headers, body: answer } = await this.#post(this.#url, request);
      if (status >= 200 && status < 300) return taken(answer, spans.length);
      const reason = `it answered ${status}`;
      // A redirect says that the setting is wrong: none is followed.
      if (status >= 400 && !RETRIED.has(status)) return { kind: 'refused', reason, isFault: status >= 500 };
      const afterMs = (Number(headers['retry-after']) || 0) * 1_000;
      return { kind: 'later', reason, afterMs, mayBeTooMuch: TIMED_OUT.has(status) };
    } catch (error) {
      signal.throwIfAborted();
      return { kind: 'later', reason: errorMessage(error), afterMs: 0, mayBeTooMuch: true };
    }
  }
}
