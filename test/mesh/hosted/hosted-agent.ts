import type { IncomingMessage, ServerResponse } from 'node:http';
import { DISPATCH_URI } from '../../../contracts/a2a/extensions.js';
import { httpServer, type LoopbackServer } from '../../runtime/loopback-server.js';
import { refusalOf } from './strict-requests.js';

/** One request as it reached the hosted agent. */
interface HostedRequest {
  method: string;
  body: Record<string, unknown> & { id: unknown; params: Record<string, unknown> };
  headers: IncomingMessage['headers'];
}

/** What the platform adds to a request, as an agent finds it whose card does not name the extension. */
export function dispatchIn({ body }: HostedRequest): { dispatch_id?: string } {
  const { metadata } = body.params as { metadata: { [DISPATCH_URI]: { dispatch_id?: string } } };
  return metadata[DISPATCH_URI];
}

/** How the agent answers one request. */
class Reply {
  constructor(
    readonly response: ServerResponse,
    readonly request: HostedRequest,
  ) {}

  #rpc(member: object): string {
    return JSON.stringify({ jsonrpc: '2.0', id: this.request.body.id, ...member });
  }

  result(result: unknown): void {
    this.raw(200, 'application/json', this.#rpc({ result }));
  }

  error(code: number, message: string, data?: unknown): void {
    this.raw(200, 'application/json', this.#rpc({ error: { code, message, data } }));
  }

  raw(status: number, contentType: string, body: string): void {
    this.response.writeHead(status, { 'content-type': contentType }).end(body);
  }

  /** One event of a stream; the first opens it. */
  event(result: unknown): void {
    if (!this.response.headersSent) this.response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.response.write(`data: ${this.#rpc({ result })}\n\n`);
  }

  /** Ends the answer as it should be ended. */
  end(): void {
    this.response.end();
  }

  /** Breaks the connection. */
  break(): void {
    this.response.destroy();
  }
}

export type Script = Partial<Record<string, (reply: Reply) => void | Promise<void>>>;

export interface HostedAgentServer extends LoopbackServer {
  received: HostedRequest[];
  /** JSON-RPC methods in the order in which they came. */
  methods(): string[];
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/**
 * A hosted agent on loopback that answers each JSON-RPC method as the script says, -32601 where it says nothing. As official servers do, it refuses
 * requests with a member that A2A does not have.
 * @param options.takesDispatches it takes the payload of a dispatch as a body, as agents of the SDK do
 */
export async function hostedAgent(
  script: Script,
  options: { takesDispatches?: boolean } = {},
): Promise<HostedAgentServer> {
  const received: HostedRequest[] = [];
  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = JSON.parse(await readBody(incoming)) as HostedRequest['body'] & { method: string };
    const request = { method: body.method, body, headers: incoming.headers };
    received.push(request);
    const reply = new Reply(response, request);
    const refusal = options.takesDispatches ? undefined : refusalOf(body);
    const answer = script[body.method];
    if (refusal) reply.error(refusal.code, refusal.message, refusal.data);
    else if (answer) await answer(reply);
    else reply.error(-32601, 'Method not found');
  };
  const server = await httpServer((request, response) => {
    serve(request, response).catch((error: Error) => response.destroy(error));
  });
  return Object.assign(server, { received, methods: () => received.map(({ method }) => method) });
}

export const message = (text: string) => ({
  kind: 'message',
  messageId: 'm1',
  role: 'agent',
  parts: [{ kind: 'text', text }],
});

export const task = (state: string, more: object = {}) => ({
  kind: 'task',
  id: 'remote-1',
  contextId: 'remote-context',
  status: { state },
  ...more,
});

export const artifact = (text: string, id = 'answer') => ({ artifactId: id, parts: [{ kind: 'text', text }] });

export const artifactUpdate = (text: string, append: boolean) => ({
  kind: 'artifact-update',
  taskId: 'remote-1',
  contextId: 'remote-context',
  artifact: artifact(text),
  append,
});

export const statusUpdate = (state: string, text?: string) => ({
  kind: 'status-update',
  taskId: 'remote-1',
  contextId: 'remote-context',
  status: { state, ...(text !== undefined && { message: message(text) }) },
  final: state !== 'working' && state !== 'submitted',
});
