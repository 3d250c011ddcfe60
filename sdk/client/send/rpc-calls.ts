import { STREAM_SILENCE_MS } from '../api/followed-events.js';
import type { CallOptions, PlatformApi } from '../api/platform-api.js';
import { withRetries } from '../api/retries.js';
import { type JsonObject, readJson, requestIdOf } from '../transport/transport.js';
import { resumedStream, type StreamPosition } from './resumed-stream.js';
import { type NumberedEvent, rpcRequest, rpcResult, streamEvents } from './rpc.js';
import type { StreamEvent } from './sent-task.js';

/** Options of a JSON-RPC call. */
interface RpcOptions extends CallOptions {
  /** W3C trace context of the caller. */
  traceparent?: string;
}

/** JSON-RPC calls to `/send`. */
export class RpcCalls {
  readonly #api: PlatformApi;
  readonly #currentTraceparent: () => string;

  /** @param currentTraceparent the span of a call that names none */
  constructor(api: PlatformApi, currentTraceparent: () => string = () => '') {
    this.#api = api;
    this.#currentTraceparent = currentTraceparent;
  }

  /** The result of a method. @param retry whether to repeat it after a temporary failure */
  call<Result>(method: string, params: JsonObject, options: RpcOptions, retry = false): Promise<Result> {
    const once = async () => {
      const answer = await this.#api.open('/send', { body: rpcRequest(method, params), ...this.#opening(options) });
      return rpcResult(await readJson(answer), requestIdOf(answer)) as Result;
    };
    return retry ? withRetries(once, options.signal) : once();
  }

  /**
   * Streams a task from a position, which says where the stream stands.
   * @param message params of `message/stream`, for a task whose id is not known yet: the same message returns the same task, so it is repeated
   *   until the id is known
   */
  stream(position: StreamPosition, message: JsonObject, options: RpcOptions): AsyncGenerator<StreamEvent> {
    return resumedStream((at) => this.#open(at, message, options), position, options.signal);
  }

  async #open(
    position: StreamPosition,
    message: JsonObject,
    options: RpcOptions,
  ): Promise<AsyncGenerator<NumberedEvent>> {
    const { taskId, lastEventId } = position;
    const body = taskId ? rpcRequest('tasks/resubscribe', { id: taskId }) : rpcRequest('message/stream', message);
    const { headers, ...rest } = this.#opening(options);
    const resumed = { ...headers, ...(lastEventId && { 'last-event-id': lastEventId }) };
    return streamEvents(
      await this.#api.open('/send', { body, silenceMs: STREAM_SILENCE_MS, headers: resumed, ...rest }),
    );
  }

  #opening({ traceparent = this.#currentTraceparent(), signal }: RpcOptions) {
    return { headers: { ...(traceparent && { traceparent }) }, ...(signal && { signal }) };
  }
}
