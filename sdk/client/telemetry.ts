import { type GetTracesRequest, type Trace, TraceResponse, TracesResponse } from '../../contracts/api/telemetry.js';
import type { CallOptions, PlatformApi } from './platform-api.js';

/** Which traces, and which page of them. */
export type TraceFilters = Partial<Omit<GetTracesRequest, 'trace_id'>>;

/** What happened to messages. Needs the scope `read`. */
export class Telemetry {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** A page of traces, the newest first. */
  traces(filters: TraceFilters = {}, options: CallOptions = {}): Promise<TracesResponse> {
    return this.#api.post('/telemetry/get_traces', filters, TracesResponse, { ...options, retry: true });
  }

  /** A trace with its spans. @param traceId of `metadata.trace_id` of a task, for example */
  async trace(traceId: string, options: CallOptions = {}): Promise<Trace> {
    const body = { trace_id: traceId };
    return (await this.#api.post('/telemetry/get_traces', body, TraceResponse, { ...options, retry: true })).trace;
  }
}
