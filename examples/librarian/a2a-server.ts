import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { MessageSendParams, type RpcId, RpcRequest } from '../../contracts/a2a.js';
import { RPC_ERRORS } from '../../contracts/errors.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Part } from '../../contracts/parts.js';

export interface A2aServerOptions {
  /** The agent card for an address where this server is reached. */
  card(url: string): object;
  /** Throws when the bearer token does not come from the platform. */
  verify(authorization: string | undefined): Promise<void>;
  answer(parts: readonly Part[]): Part[];
}

const CARD_PATH = '/.well-known/agent-card.json';

type Send = (status: number, body: object) => void;

/** A plain A2A 0.3 server over HTTP: an agent card, `message/send` answered as JSON, `message/stream` as server-sent events. */
export function createA2aServer(options: A2aServerOptions): Server {
  return createServer((request, response) => {
    const send: Send = (status, body) => {
      response.writeHead(status, {
        'content-type': 'application/json',
        ...(status === 401 && { 'www-authenticate': 'Bearer' }),
      });
      response.end(JSON.stringify(body));
    };
    serve(options, request, response, send).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else send(500, { error: error instanceof Error ? error.message : String(error) });
    });
  });
}

async function serve(
  options: A2aServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  send: Send,
): Promise<void> {
  if (request.method === 'GET' && request.url === CARD_PATH) send(200, options.card(`http://${request.headers.host}/`));
  else if (request.method !== 'POST') send(request.method === 'GET' ? 404 : 405, { error: 'POST JSON-RPC here' });
  else if (!(await isVerified(options, request))) send(401, { error: "the bearer token is not the platform's" });
  else {
    const text = await readBody(request);
    const reply = text === null ? null : replyTo(options.answer, text);
    if (!reply) send(413, { error: `a body has at most ${LIMITS.bodyBytes} bytes` });
    else if (reply.kind === 'json') send(200, reply.body);
    else streamAnswer(response, reply);
  }
}

async function isVerified(options: A2aServerOptions, request: IncomingMessage): Promise<boolean> {
  try {
    await options.verify(request.headers.authorization);
    return true;
  } catch {
    return false; // whoever calls learns no more than that
  }
}

type Reply = { kind: 'json'; body: object } | StreamReply;
interface StreamReply {
  kind: 'stream';
  id: RpcId;
  place: Place;
  parts: Part[];
}

/** Answers one JSON-RPC call; errors of the call ride on HTTP 200. */
function replyTo(answer: A2aServerOptions['answer'], text: string): Reply {
  const parsed = parseJson(text);
  if (parsed === undefined) return failure(null, RPC_ERRORS.PARSE_ERROR, 'not JSON');
  const request = RpcRequest.safeParse(parsed);
  if (!request.success) return failure(null, RPC_ERRORS.INVALID_REQUEST, 'not a JSON-RPC 2.0 request');
  const { id = null, method, params } = request.data;
  if (method === 'tasks/get') return failure(id, RPC_ERRORS.TASK_NOT_FOUND, 'tasks end with their answer');
  if (method !== 'message/send' && method !== 'message/stream') {
    return failure(id, RPC_ERRORS.METHOD_NOT_FOUND, `there is no method ${method.slice(0, 64)}`);
  }
  const sent = MessageSendParams.safeParse(params);
  if (!sent.success) return failure(id, RPC_ERRORS.INVALID_PARAMS, 'not the params of a message');
  const place = { taskId: randomUUID(), contextId: sent.data.message.contextId ?? randomUUID() };
  const parts = answer(sent.data.message.parts);
  if (method === 'message/stream') return { kind: 'stream', id, place, parts };
  return { kind: 'json', body: { jsonrpc: '2.0', id, result: task(place, 'completed', parts) } };
}

interface Place {
  taskId: string;
  contextId: string;
}

const ARTIFACT_ID = 'answer';

/** The task, an update for each part of the answer, and the end. */
function streamAnswer(response: ServerResponse, { id, place, parts }: StreamReply): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const write = (result: object) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
  write(task(place, 'working', []));
  for (const [index, part] of parts.entries()) {
    const artifact = { artifactId: ARTIFACT_ID, parts: [part] };
    write({ kind: 'artifact-update', ...place, artifact, append: index > 0, lastChunk: index === parts.length - 1 });
  }
  write({
    kind: 'status-update',
    ...place,
    status: { state: 'completed', timestamp: new Date().toISOString() },
    final: true,
  });
  response.end();
}

function task({ taskId, contextId }: Place, state: 'working' | 'completed', parts: Part[]): object {
  const artifacts = parts.length > 0 ? [{ artifactId: ARTIFACT_ID, parts }] : [];
  return { kind: 'task', id: taskId, contextId, status: { state, timestamp: new Date().toISOString() }, artifacts };
}

function failure(id: RpcId, code: number, message: string): Reply {
  return { kind: 'json', body: { jsonrpc: '2.0', id, error: { code, message } } };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
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
