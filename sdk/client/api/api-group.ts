import { type AsIs, fromWire, toWire } from '../../wire/names.js';
import { readLines } from '../send/event-reader.js';
import { followedEvents, STREAM_SILENCE_MS } from './followed-events.js';
import type { CallOptions, OpenOptions, PlatformApi } from './platform-api.js';

export type { CallOptions } from './platform-api.js';

/** An operation as its generated method describes it. */
export interface OperationCall {
  /** `POST` by default. */
  verb?: 'GET';
  path: string;
  /** The body is a form. */
  form?: boolean;
  /** It needs no token. */
  isPublic?: boolean;
  /** Whether the call may be repeated after a temporary failure. */
  retry?: boolean;
  /** The members of the request, and those of the answer, whose names are left as they are. */
  requestAsIs?: AsIs;
  responseAsIs?: AsIs;
}

/** An id in the path of an operation. @throws TypeError where it is no text, such as an object in place of two arguments */
export function segment(id: Record<string, string>): string {
  const [[name, value] = ['id', '']] = Object.entries(id);
  if (typeof value !== 'string' || value === '')
    throw new TypeError(`${name} must be a text that is not empty: it is the first argument, before the request`);
  return encodeURIComponent(value);
}

/** Some operations of the platform as methods. */
export class ApiGroup {
  readonly #api: PlatformApi;

  constructor(api: PlatformApi) {
    this.#api = api;
  }

  /** Makes a call. Answers are not validated: members and values that this release does not know are passed on. */
  protected async invoke<Response>(operation: OperationCall, request: object, options: CallOptions): Promise<Response> {
    const { path, opening } = requestOf(operation, request, options);
    const answer = await this.#api.json(path, opening, operation.retry);
    return fromWire<Response>(answer, operation.responseAsIs);
  }

  /** Follows server-sent events over as many connections as necessary. */
  protected async *invokeStream<Item>(
    operation: OperationCall,
    request: object,
    options: CallOptions,
  ): AsyncGenerator<Item> {
    const { path, opening } = requestOf(operation, request, options);
    const open = (lastEventId: string) => {
      const headers: Record<string, string> = lastEventId === '' ? {} : { 'last-event-id': lastEventId };
      return this.#api.open(path, { ...opening, silenceMs: STREAM_SILENCE_MS, headers });
    };
    for await (const event of followedEvents(open, options.signal)) yield fromWire<Item>(event, operation.responseAsIs);
  }

  /** Reads JSON Lines. */
  protected async *invokeLines<Item>(
    operation: OperationCall,
    request: object,
    options: CallOptions,
  ): AsyncGenerator<Item> {
    const { path, opening } = requestOf(operation, request, options);
    const answer = await this.#api.open(path, opening);
    try {
      for await (const line of readLines(answer.body)) {
        if (line !== '') yield fromWire<Item>(JSON.parse(line), operation.responseAsIs);
      }
    } finally {
      answer.discard();
    }
  }
}

function requestOf(
  { verb, path, form, isPublic, requestAsIs }: OperationCall,
  request: object,
  { signal }: CallOptions,
) {
  const body = toWire(request, requestAsIs) as Record<string, string>;
  const opening: OpenOptions = { ...(isPublic && { isPublic }), ...(signal && { signal }) };
  if (verb !== 'GET') return { path, opening: { ...opening, body, ...(form && { form }) } };
  const query = String(new URLSearchParams(body));
  return { path: query === '' ? path : `${path}?${query}`, opening: { ...opening, method: verb } };
}
