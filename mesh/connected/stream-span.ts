import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { derivedSpanId, spanIdOf, uuidOf } from '../../runtime/ids.js';
import type { SpanRecorder } from '../../telemetry/traces/span-recorder.js';
import type { ChunkLog } from './chunks.js';

type Streamed = Pick<OpenDispatch, 'tenant_id' | 'message_id' | 'dispatch_id' | 'payload'>;

/** Records a span from the first to the last chunk of an agent's output, with their number. Records nothing if no chunk came. */
export function recordStream(
  recorder: SpanRecorder,
  { tenant_id, message_id, dispatch_id, payload }: Streamed,
  chunks: Pick<ChunkLog, 'count' | 'times'> | undefined,
): void {
  if (!chunks?.times) return;
  const { firstAtMs: startedAtMs, lastAtMs: endedAtMs } = chunks.times;
  const { traceparent } = payload.session_context.propagation_headers;
  recorder.record({
    ...{ tenant_id, message_id, traceparent },
    span_id: derivedSpanId('chunks', dispatch_id),
    parent_span_id: spanIdOf(uuidOf(dispatch_id)),
    name: 'chunks',
    kind: 'internal',
    startedAtMs,
    endedAtMs,
    error_type: null,
    attributes: { 'fleet.chunk.count': chunks.count },
  });
}
