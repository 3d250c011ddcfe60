import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { AGENT_NOT_READY } from '../../contracts/errors.js';
import { LIMITS } from '../../contracts/limits.js';
import { EventWriter } from './event-writer.js';
import type { Reply } from './rpc-server.js';
import type { Verdict } from './token-verifier.js';

export interface HostedServerOptions {
  /** The agent card. */
  card(): object;
  /** Checks the bearer token of a request. */
  verify(authorization: string | undefined): Promise<Verdict>;
  /** Whether the agent is closing: each connection then ends with its current answer. */
  isDraining(): boolean;
  /** Answers one JSON-RPC request. */
  answer(body: string, reply: Reply): Promise<void>;
  /** Called with an unexpected error; the caller gets only a 500. */
  onFailure(error: unknown): void;
}

const CARD_PATH = '/.well-known/agent-card.json';
/** Time limit for a whole request to arrive. */
const REQUEST_TIMEOUT_MS = 30_000;

/** The HTTP server of a hosted agent: the agent card for everyone, JSON-RPC for the platform. */
export function createHostedServer(options: HostedServerOptions): Server {
  return createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    serve(options, request, response).catch((error: unknown) => {
      options.onFailure(error);
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: 'the agent failed' });
    });
  });
}

async function serve(options: HostedServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://agent');
  if (options.isDraining()) response.setHeader('connection', 'close');
  if (request.method === 'POST') await answerVerified(options, request, response);
  else if (request.method !== 'GET') sendJson(response, 405, { error: 'POST JSON-RPC here' });
  else if (pathname.endsWith(CARD_PATH)) sendJson(response, 200, options.card());
  else sendJson(response, 404, { error: 'POST JSON-RPC here' });
}

async function answerVerified(
  options: HostedServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const verdict = await options.verify(request.headers.authorization);
  if (verdict === 'not_ready') {
    // The request is not read, so the platform may send it to another agent.
    sendJson(response, 503, { error: 'the agent cannot check the bearer token yet', code: AGENT_NOT_READY });
  } else if (verdict === 'refused') {
    response.setHeader('www-authenticate', 'Bearer');
    sendJson(response, 401, { error: "the bearer token is not the platform's" }); // a stranger gets no details
  } else {
    const body = await readBody(request);
    if (body === null) sendJson(response, 413, { error: `a body has at most ${LIMITS.bodyBytes} bytes` });
    else await options.answer(body, replyOn(response));
  }
}

function replyOn(response: ServerResponse): Reply {
  const disconnected = new AbortController();
  const closed = new Promise<void>((resolve) => {
    response.once('close', () => {
      if (!response.writableFinished) disconnected.abort();
      resolve();
    });
  });
  const json = (body: object) => sendJson(response, 200, body);
  return { json, stream: () => new EventWriter(response), disconnected: disconnected.signal, closed };
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** The body; null when it is too large. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= LIMITS.bodyBytes) chunks.push(chunk);
  }
  return bytes > LIMITS.bodyBytes ? null : Buffer.concat(chunks).toString('utf8');
}
