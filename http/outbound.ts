import { lookup as systemLookup } from 'node:dns/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import type { Logger } from '../runtime/logger.js';
import { OutboundExchange, type RequestParts } from './outbound-exchange.js';
import { AddressGuard, guardedConnector, type ResolveHost } from './outbound-guard.js';

export { OutboundError } from './outbound-error.js';

const DEFAULT_MAX_RESPONSE_BYTES = 50 * 1024;
const DEFAULT_CONNECT_TIMEOUT_MS = 5_000;
/** Shorter than that of common servers: a request on a connection that the peer is closing would count as sent. */
const KEEP_ALIVE_MS = 1_000;

export interface OutboundOptions {
  /** Ranges that are allowed besides public unicast addresses (`OUTBOUND_ALLOW_CIDRS`), for IPv4 and IPv6 separately. */
  allowCidrs: readonly string[];
  log?: Pick<Logger, 'warn'>;
  /** Name resolution, that of the system by default. Its answers are checked too. */
  lookup?: ResolveHost;
  /** For DNS, TCP and TLS together, in milliseconds; 5000 by default. */
  connectTimeoutMs?: number;
}

export interface OutboundRequestOptions extends RequestParts {
  /** For the whole exchange, from the call to the last byte of the body, in milliseconds. */
  timeoutMs: number;
  /** Of the body; 51200 (50 KB) by default. The rest is not read, and the connection is dropped. */
  maxResponseBytes?: number;
  signal?: AbortSignal;
}

export interface OutboundResponse {
  status: number;
  /** By lower-case name; repeated ones are joined with `, `. */
  headers: Record<string, string>;
  body: Buffer;
  /** Whether the body was longer than `maxResponseBytes`. */
  truncated: boolean;
}

export interface OutboundStreamOptions extends RequestParts {
  /** From the call to the response headers, in milliseconds. */
  headersTimeoutMs: number;
  /** Between two chunks of the body, in milliseconds, give or take a second; unlimited by default. */
  idleTimeoutMs?: number;
  /** Of the body; more fails with TOO_LARGE. Unlimited by default. */
  maxResponseBytes?: number;
  signal?: AbortSignal;
}

export interface OutboundStream {
  status: number;
  headers: Record<string, string>;
  /** Readable once. Holds the connection until its end or `cancel()`. Throws OutboundError. */
  body: AsyncIterable<Buffer>;
  /** Drops the connection; reading the body throws ABORTED. */
  cancel(): void;
}

function flatten(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value = '']) => [name, [value].flat().join(', ')]));
}

/** Reads a body up to a size; the rest of a longer one is not read, and the connection is dropped. */
export async function readCapped(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<Pick<OutboundResponse, 'body' | 'truncated'>> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk.subarray(0, maxBytes - size));
    size += chunk.length;
    if (size > maxBytes) break; // drops the connection
  }
  return { body: Buffer.concat(chunks), truncated: size > maxBytes };
}

async function* readStream(exchange: OutboundExchange, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const chunk of exchange.chunks()) {
      size += chunk.length;
      if (size > maxBytes) throw exchange.error('TOO_LARGE');
      yield chunk;
    }
  } catch (error) {
    throw exchange.explain(error);
  } finally {
    exchange.leave();
  }
}

async function requestWith(agent: Dispatcher, url: URL, options: OutboundRequestOptions): Promise<OutboundResponse> {
  const exchange = new OutboundExchange(options.timeoutMs, options.signal);
  try {
    const { status, headers } = await exchange.open(agent, url, options, 0);
    const read = await readCapped(exchange.body, options.maxResponseBytes ?? DEFAULT_MAX_RESPONSE_BYTES);
    return { status, headers: flatten(headers), ...read };
  } catch (error) {
    throw exchange.explain(error);
  } finally {
    exchange.settle();
  }
}

async function streamWith(agent: Dispatcher, url: URL, options: OutboundStreamOptions): Promise<OutboundStream> {
  const exchange = new OutboundExchange(options.headersTimeoutMs, options.signal);
  try {
    const { status, headers } = await exchange.open(agent, url, options, options.idleTimeoutMs ?? 0);
    exchange.clearDeadline();
    return {
      status,
      headers: flatten(headers),
      body: readStream(exchange, options.maxResponseBytes ?? Number.POSITIVE_INFINITY),
      cancel: () => {
        exchange.cancel('ABORTED');
        exchange.settle();
      },
    };
  } catch (error) {
    exchange.settle();
    throw exchange.explain(error);
  }
}

/**
 * Creates the HTTP client for addresses that users give, one for each process. It reaches only public
 * unicast addresses and the allowed ranges, verifies TLS, follows no redirect and never sends a request twice.
 * @throws TypeError when `allowCidrs` has something else than CIDR ranges
 */
export function createOutbound(options: OutboundOptions) {
  const guard = new AddressGuard(options.allowCidrs, options.log);
  const resolveHost = options.lookup ?? ((hostname) => systemLookup(hostname, { all: true }));
  const connectTimeoutMs = options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
  const agent = new Agent({
    connect: guardedConnector(guard, { resolveHost, connectTimeoutMs }),
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  });
  return {
    /** Reads the response into memory. Rejects only with OutboundError. */
    request: async (url: string, parts: OutboundRequestOptions): Promise<OutboundResponse> =>
      requestWith(agent, guard.checkUrl(url), parts),
    /** Resolves at the response headers; the body is a stream. Rejects only with OutboundError. */
    stream: async (url: string, parts: OutboundStreamOptions): Promise<OutboundStream> =>
      streamWith(agent, guard.checkUrl(url), parts),
    /**
     * Throws OutboundError BAD_URL (not http or https, or with credentials) or FORBIDDEN_ADDRESS (a literal address that may not be
     * reached). Names are not resolved here: they are checked at each connection.
     */
    checkUrl: (url: string): void => void guard.checkUrl(url),
    /** Aborts all exchanges (ABORTED) and closes all connections. */
    close: (): Promise<void> => agent.destroy(),
  };
}

/** The HTTP client for addresses that users give. */
export type Outbound = ReturnType<typeof createOutbound>;
