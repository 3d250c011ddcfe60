import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { httpServer } from '../runtime/loopback-server.js';
import { textMessage } from '../setup/core.js';
import type { ApiClient } from '../setup/platform/api-client.js';

/** A span as it came over OTLP. */
export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code: number; message?: string };
  attributes: { key: string; value: Record<string, unknown> }[];
}

interface ExportBody {
  resourceSpans: {
    resource: { attributes: { key: string; value: Record<string, unknown> }[] };
    scopeSpans: { scope: { name: string }; spans: CollectedSpan[] }[];
  }[];
}

/** What a collector does not take. */
interface Refusals {
  /** More spans in a request are too large (413), or more than it has the time for (504). */
  spansMax: number;
  spansInTime: number;
  /** A request with such a span is bad (400). */
  isBad(span: CollectedSpan): boolean;
}

/** An OpenTelemetry collector that speaks OTLP over HTTP with JSON. It is away until it comes back. */
export class TestCollector {
  readonly spans: CollectedSpan[] = [];
  readonly requests: { path: string; headers: Record<string, unknown>; services: unknown[] }[] = [];
  /** Requests that it did not take. */
  refused = 0;
  #refusals: Refusals | undefined;
  /** Where it is reached. */
  url = '';

  private constructor() {}

  static async start(): Promise<TestCollector> {
    const collector = new TestCollector();
    const server = await httpServer(async (request, response) => {
      const status = collector.#take(request, JSON.parse(await text(request)));
      response.writeHead(status, { 'content-type': 'application/json' }).end(status === 200 ? '{}' : '');
    });
    collector.url = server.url;
    return collector;
  }

  /** @returns the status of the answer */
  #take({ url: path = '', headers }: IncomingMessage, { resourceSpans }: ExportBody): number {
    const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
    const status = this.#statusFor(spans);
    if (status !== 200) {
      this.refused += 1;
      return status;
    }
    this.spans.push(...spans);
    const attributes = resourceSpans.flatMap(({ resource }) => resource.attributes);
    const services = attributes.filter(({ key }) => key === 'service.name').map(({ value }) => value.stringValue);
    this.requests.push({ path, headers, services });
    return status;
  }

  comeBack(refusals: Refusals): void {
    this.#refusals = refusals;
  }

  #statusFor(spans: CollectedSpan[]): number {
    if (!this.#refusals) return 503;
    if (spans.length > this.#refusals.spansInTime) return 504;
    if (spans.length > this.#refusals.spansMax) return 413;
    return spans.some((span) => this.#refusals?.isBad(span)) ? 400 : 200;
  }
}

/** A message, sent as a caller that has a trace of its own. @returns the id of its task */
export async function sendTraced(
  client: ApiClient,
  trace: { traceparent: string; tracestate?: string },
  params: { message?: object; metadata?: object; configuration?: object },
): Promise<string> {
  const message = { ...textMessage('go'), ...params.message };
  const given = { ...params, message, configuration: { blocking: false, ...params.configuration } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: given });
  const answer = await client.raw('/send', body, { ...(await client.headers()), ...trace });
  return (answer.body as { result: { id: string } }).result.id;
}
