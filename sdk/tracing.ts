import { createRequire } from 'node:module';
import type * as OpenTelemetry from '@opentelemetry/api';
import { SDK_VERSION } from './version.js';

let loaded: typeof OpenTelemetry | null | undefined;

/** The API of OpenTelemetry where the program has it; the package does not need it. */
function api(): typeof OpenTelemetry | null {
  if (loaded !== undefined) return loaded;
  try {
    loaded = createRequire(import.meta.url)('@opentelemetry/api') as typeof OpenTelemetry;
  } catch {
    loaded = null;
  }
  return loaded;
}

/** The current span as a W3C header; empty without one. */
export function currentTraceparent(): string {
  const span = api()?.trace.getActiveSpan()?.spanContext();
  if (!span || !api()?.isSpanContextValid(span)) return '';
  return `00-${span.traceId}-${span.spanId}-${(span.traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}

/** Runs a handler in a span of its own, which is part of the caller's trace. What it throws is recorded, and passed on. */
export async function inSpan<T>(
  name: string,
  traceparent: string,
  attributes: Record<string, string | number | undefined>,
  run: () => Promise<T>,
): Promise<T> {
  const otel = api();
  if (!otel) return run();
  const [, traceId = '', spanId = '', flags = ''] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent) ?? [];
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  const parent = traceId ? otel.trace.setSpanContext(otel.ROOT_CONTEXT, remote) : otel.ROOT_CONTEXT;
  const options = { kind: otel.SpanKind.SERVER, attributes };
  return otel.trace.getTracer('agent-fleet-sdk', SDK_VERSION).startActiveSpan(name, options, parent, async (span) => {
    try {
      return await run();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      span.recordException(error instanceof Error ? error : message);
      span.setStatus({ code: otel.SpanStatusCode.ERROR, message });
      throw error;
    } finally {
      span.end();
    }
  });
}
