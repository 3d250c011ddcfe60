import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cleanUp } from '../setup/clean-up.js';

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
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as ExportBody;
        const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
        const status = this.#statusFor(spans);
        if (status !== 200) {
          this.refused += 1;
          response.writeHead(status).end();
          return;
        }
        this.spans.push(...spans);
        const services = resourceSpans.flatMap(({ resource }) =>
          resource.attributes.filter(({ key }) => key === 'service.name').map(({ value }) => value.stringValue),
        );
        this.requests.push({ path: request.url ?? '', headers: request.headers, services });
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
  }

  static async start(): Promise<TestCollector> {
    const collector = new TestCollector();
    const server = collector.#server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUp(async () => {
      server.closeAllConnections();
      server.close();
    });
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
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
