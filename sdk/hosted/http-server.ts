import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { LIMITS } from '../../contracts/limits.js';
import { EventWriter } from './event-writer.js';
import type { Reply } from './rpc-server.js';

export interface HostedServerParts {
  /** The agent card for the address that it is asked at. */
  card(): object;
  /** Rejects when the bearer token does not come from the platform. */
  verify(authorization: string | undefined): Promise<void>;
  /** Answers one request. */
  answer(body: string, reply: Reply): Promise<void>;
  /** Learns what went wrong where the caller was told only that something did. */
  onFailure(error: unknown): void;
}

const CARD_PATH = '/.well-known/agent-card.json';
/** For a whole request to arrive. */
const REQUEST_TIMEOUT_MS = 30_000;

/** The HTTP side of a hosted agent: its card for everyone, JSON-RPC for the platform. */
export function createHostedServer(parts: HostedServerParts): Server {
  return createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    serve(parts, request, response).catch((error: unknown) => {
      parts.onFailure(error);
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: 'the agent failed' });
    });
  });
}

async function serve(parts: HostedServerParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://agent');
  if (request.method === 'GET' && pathname.endsWith(CARD_PATH)) sendJson(response, 200, parts.card());
  else if (request.method !== 'POST')
    sendJson(response, request.method === 'GET' ? 404 : 405, { error: 'POST JSON-RPC here' });
  else if (!(await isVerified(parts, request))) {
    response.setHeader('www-authenticate', 'Bearer');
    sendJson(response, 401, { error: "the bearer token is not the platform's" });
  } else {
    const body = await readBody(request);
    if (body === null) sendJson(response, 413, { error: `a body has at most ${LIMITS.bodyBytes} bytes` });
    else await parts.answer(body, replyOn(response));
  }
}

async function isVerified({ verify }: HostedServerParts, request: IncomingMessage): Promise<boolean> {
  try {
    await verify(request.headers.authorization);
    return true;
  } catch {
    return false; // whoever calls learns no more than that
  }
}

function replyOn(response: ServerResponse): Reply {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  return { json: (body) => sendJson(response, 200, body), stream: () => new EventWriter(response), gone: gone.signal };
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** The body, or null when it is too large. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= LIMITS.bodyBytes) chunks.push(chunk);
  }
  return bytes > LIMITS.bodyBytes ? null : Buffer.concat(chunks).toString('utf8');
}
