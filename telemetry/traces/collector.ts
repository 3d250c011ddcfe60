import type { Config } from '../../runtime/config.js';
import { errorMessage } from '../../runtime/errors.js';
import { type ExportedSpan, exportRequest } from './otlp.js';

/** Makes a request to the collector. Rejects where no answer comes in time. */
export type PostToCollector = (
  url: string,
  request: { method: 'POST'; headers: Record<string, string>; body: string; timeoutMs: number; signal: AbortSignal },
) => Promise<{ status: number; headers: Record<string, string> }>;

/** `later`: the collector is away, or asks for a pause. `refused`: it will never take these spans. */
export type Delivery =
  | { kind: 'taken' }
  | { kind: 'refused'; reason: string }
  | { kind: 'later'; reason: string; afterMs: number };

/**
 * The statuses with which a collector asks for the same request again (OTLP over HTTP), and those that say that the setting is wrong, such as a
 * token that has expired: the record keeps the traces until it is right.
 */
const RETRIED = new Set([401, 403, 404, 408, 429, 502, 503, 504]);

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
      const { status, headers } = await this.#post(this.#url, request);
      if (status >= 200 && status < 300) return { kind: 'taken' };
      const reason = `it answered ${status}`;
      if (!RETRIED.has(status)) return { kind: 'refused', reason };
      return { kind: 'later', reason, afterMs: (Number(headers['retry-after']) || 0) * 1_000 };
    } catch (error) {
      signal.throwIfAborted();
      return { kind: 'later', reason: errorMessage(error), afterMs: 0 };
    }
  }
}
