import type { z } from 'zod';
import type { A2aVersion, StreamEvent } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import type { AcceptContext } from '../../messages/accept/draft.js';
import type { StreamItem } from '../../messages/stream/stream.js';
import { firstProblem } from '../mount.js';
import { RpcError } from './rpc-error.js';

/** Who calls a method of `/send`, and how. */
export interface CallContext {
  version: A2aVersion;
  caller: Caller;
  trace: Omit<AcceptContext, 'method'>;
  /** The cursor after which a stream is to go on. */
  lastEventId?: string;
  /** Of the request's body; infinite when it is not known. */
  bodyBytes: number;
  /** Aborts when the caller leaves or the process drains; made when it is asked for. */
  signal: () => AbortSignal;
}

/** How one version of A2A spells a method: its name, its params, and its result (of a stream, each event). */
interface Spelling<Params, Result> {
  name: string;
  params: z.ZodType<Params>;
  result: (result: Result) => unknown;
}
type Spellings<Params, Result> = Partial<Record<A2aVersion, Spelling<Params, Result>>>;

/** An event of a stream as it goes out, and the cursor by which a reader goes on after it. */
export interface WireItem {
  cursor: string;
  event: unknown;
}

/** A method in one version, from wire to wire. Errors: RpcError, and PlatformError for what keeps its HTTP status. */
export type Method =
  | { kind: 'answer'; call: (params: unknown, context: CallContext) => Promise<unknown> }
  /** Nothing is streamed before the call has resolved: until then it may still be refused. */
  | { kind: 'stream'; call: (params: unknown, context: CallContext) => Promise<AsyncIterable<WireItem>> };

/** A line of the method table. */
export interface NamedMethod {
  version: A2aVersion;
  name: string;
  method: Method;
}

function read<Params>(schema: z.ZodType<Params>, params: unknown): Params {
  const parsed = schema.safeParse(params);
  if (parsed.success) return parsed.data;
  throw new RpcError('INVALID_PARAMS', `params.${firstProblem(parsed.error)}`);
}

function named<Params, Result>(
  spellings: Spellings<Params, Result>,
  method: (spelling: Spelling<Params, Result>) => Method,
): NamedMethod[] {
  return (Object.entries(spellings) as [A2aVersion, Spelling<Params, Result>][]).map(([version, spelling]) => ({
    version,
    name: spelling.name,
    method: method(spelling),
  }));
}

/** A method that answers once. */
export function answering<Params, Result>(
  answer: (params: Params, context: CallContext) => Promise<Result>,
  spellings: Spellings<Params, Result>,
): NamedMethod[] {
  return named(spellings, ({ params: schema, result }) => ({
    kind: 'answer',
    call: async (params, context) => result(await answer(read(schema, params), context)),
  }));
}

/** A method that answers with a stream of events. */
export function streaming<Params>(
  open: (params: Params, context: CallContext) => Promise<AsyncIterable<StreamItem>>,
  spellings: Spellings<Params, StreamEvent>,
): NamedMethod[] {
  return named(spellings, ({ params: schema, result }) => ({
    kind: 'stream',
    call: async (params, context) => written(await open(read(schema, params), context), result),
  }));
}

async function* written(
  items: AsyncIterable<StreamItem>,
  write: (event: StreamEvent) => unknown,
): AsyncGenerator<WireItem> {
  for await (const { cursor, event } of items) yield { cursor, event: write(event) };
}

/** How a caller follows a stream. */
export function followedBy({ signal, lastEventId }: CallContext): { signal: AbortSignal; after?: string } {
  return { signal: signal(), ...(lastEventId !== undefined && { after: lastEventId }) };
}
