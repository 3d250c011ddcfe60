import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { LIMITS } from '../../contracts/limits.js';
import { EventWriter } from './event-writer.js';
import type { Reply } from './rpc-server.js';
import type { Verdict } from './token-verifier.js';

export interface HostedServerParts {
  /** The agent card for the address that it is asked at. */
  card(): object;
  /** Whether the bearer token comes from the platform. */
  verify(authorization: string | undefined): Promise<Verdict>;
  /** The agent stops: connections end with the answer that is on its way. */
  isDraining(): boolean;
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
  if (parts.isDraining()) response.setHeader('connection', 'close');
  if (request.method === 'POST') await answerVerified(parts, request, response);
  else if (request.method !== 'GET') sendJson(response, 405, { error: 'POST JSON-RPC here' });
  else if (pathname.endsWith(CARD_PATH)) sendJson(response, 200, parts.card());
  else sendJson(response, 404, { error: 'POST JSON-RPC here' });
}

async function answerVerified(
  parts: HostedServerParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const verdict = await parts.verify(request.headers.authorization);
  if (verdict === 'not_ready') {
    sendJson(response, 503, { error: 'the agent cannot tell yet whether the bearer token is valid' });
  } else if (verdict === 'refused') {
    response.setHeader('www-authenticate', 'Bearer');
    sendJson(response, 401, { error: "the bearer token is not the platform's" }); // whoever calls learns no more than that
  } else {
    const body = await readBody(request);
    if (body === null) sendJson(response, 413, { error: `a body has at most ${LIMITS.bodyBytes} bytes` });
    else await parts.answer(body, replyOn(response));
  }
}

function replyOn(response: ServerResponse): Reply {
  const gone = new AbortController();
  const left = new Promise<void>((resolve) => {
    response.once('close', () => {
      if (!response.writableFinished) gone.abort();
      resolve();
    });
  });
  const json = (body: object) => sendJson(response, 200, body);
  return { json, stream: () => new EventWriter(response), gone: gone.signal, left };
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
