import type { z } from 'zod';
import type { A2aVersion, StreamEvent } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { AcceptContext } from '../../messages/accept/draft.js';
import type { StreamItem } from '../../messages/stream/stream.js';
import { firstProblem } from '../mount.js';
import { RpcError } from './rpc-error.js';

/** The call of a method of `/send`. */
export interface CallContext {
  version: A2aVersion;
  caller: Caller;
  trace: Omit<AcceptContext, 'method'>;
  /** The cursor after which a stream continues. */
  lastEventId?: string;
  /** Size of the request body; infinite where it is unknown. */
  bodyBytes: number;
  /** Aborts when the caller leaves or the process drains. Created on the first call. */
  signal: () => AbortSignal;
}

/** A method in one version of A2A: its name, its params, and its result (of a stream, each event). */
interface MethodVersion<Params, Result> {
  name: string;
  params: z.ZodType<Params>;
  result: (result: Result) => unknown;
}
type MethodVersions<Params, Result> = Partial<Record<A2aVersion, MethodVersion<Params, Result>>>;

/** An event of a stream in its wire form, and the cursor with which a reader continues after it. */
export interface WireItem {
  cursor: string;
  event: unknown;
}

/** A method on wire forms: it parses its params and writes its result. Rejects with RpcError or PlatformError. */
export type Method =
  | { kind: 'answer'; call: (params: unknown, context: CallContext) => Promise<unknown> }
  /** The call resolves before the first event; until then it may still reject. */
  | { kind: 'stream'; call: (params: unknown, context: CallContext) => Promise<AsyncIterable<WireItem>> };

/** An entry of the method table. */
export interface NamedMethod {
  version: A2aVersion;
  name: string;
  method: Method;
}

function parseParams<Params>(schema: z.ZodType<Params>, params: unknown): Params {
  const parsed = schema.safeParse(params);
  if (parsed.success) return parsed.data;
  throw new RpcError('INVALID_PARAMS', `params.${firstProblem(parsed.error)}`);
}

function named<Params, Result>(
  versions: MethodVersions<Params, Result>,
  method: (version: MethodVersion<Params, Result>) => Method,
): NamedMethod[] {
  return (Object.entries(versions) as [A2aVersion, MethodVersion<Params, Result>][]).map(([version, inVersion]) => ({
    version,
    name: inVersion.name,
    method: method(inVersion),
  }));
}

/** A method that answers once. */
export function answering<Params, Result>(
  answer: (params: Params, context: CallContext) => Promise<Result>,
  versions: MethodVersions<Params, Result>,
): NamedMethod[] {
  return named(versions, ({ params: schema, result }) => ({
    kind: 'answer',
    call: async (params, context) => result(await answer(parseParams(schema, params), context)),
  }));
}

/** A method that answers with a stream of events. */
export function streaming<Params>(
  open: (params: Params, context: CallContext) => Promise<AsyncIterable<StreamItem>>,
  versions: MethodVersions<Params, StreamEvent>,
): NamedMethod[] {
  return named(versions, ({ params: schema, result }) => ({
    kind: 'stream',
    call: async (params, context) => toWireItems(await open(parseParams(schema, params), context), result),
  }));
}

async function* toWireItems(
  items: AsyncIterable<StreamItem>,
  write: (event: StreamEvent) => unknown,
): AsyncGenerator<WireItem> {
  for await (const { cursor, event } of items) yield { cursor, event: write(event) };
}

/** Until when, and from where, a caller reads a stream. */
export function streamOptions({ signal, lastEventId }: CallContext): { signal: AbortSignal; after?: string } {
  return { signal: signal(), ...(lastEventId !== undefined && { after: lastEventId }) };
}
