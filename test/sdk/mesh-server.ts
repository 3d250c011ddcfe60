import { randomUUID } from 'node:crypto';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { onTestFinished, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { AGENT_FRAME_PAYLOADS, type DispatchResultPayload, FrameEnvelope } from '../../contracts/frames.js';
import { localCertificate } from './certificate.js';

/** Members of `welcome` that a test can set. */
export type WelcomeChoice = {
  resumed?: boolean;
  heartbeat_interval_ms?: number;
  ping_interval_ms?: number;
  reauth?: true;
  resume_url?: string;
};

export interface Refusal {
  status: number;
  body: object | string;
  headers?: Record<string, string>;
}

/** The HTTP text of a refused upgrade. */
export function refusedUpgrade({ status, body, headers = {} }: Refusal): string {
  const lines = Object.entries({ 'content-type': 'application/json', ...headers });
  const head = [`HTTP/1.1 ${status} Refused`, ...lines.map(([name, value]) => `${name}: ${value}`)].join('\r\n');
  return `${head}\r\n\r\n${JSON.stringify(body)}`;
}

/**
 * A fake platform for agents: token, registration, and a TLS WebSocket whose frames the test writes and reads. It validates every frame of
 * the agent with the contracts.
 */
export class MeshServer {
  baseUrl = '';
  ca = '';
  /** Frames of the agent on all connections, in order. */
  readonly frames: FrameEnvelope[] = [];
  readonly requests: { path: string; body: Record<string, unknown>; authorization: string | undefined }[] = [];
  /** Sockets in order of their upgrade. */
  readonly sockets: WebSocket[] = [];
  readonly tokensOffered: (string | undefined)[] = [];
  welcome: WelcomeChoice = {};
  /** Bearer tokens that the upgrade refuses with 401. */
  readonly refusedTokens = new Set<string>();
  tokenLifetimeSeconds = 3_600;
  /** Error answers of the API, by path. */
  readonly refusals = new Map<string, Refusal>();
  /** Handles an upgrade instead of the server when it returns true. */
  onUpgrade: (socket: Duplex) => boolean = () => false;
  /** Sends nothing after the upgrade. */
  isMute = false;
  /** The instance of each open dispatch, by frame id. */
  readonly #open = new Map<string, string>();
  readonly #instances = new WeakMap<WebSocket, string>();
  /** Instances that sent `close_request`. */
  readonly #closing = new Set<string>();
  /** Keeps idle sockets open, as if a dispatch were about to be sent. */
  keepsIdleOpen = false;
  /** How `reauth` is answered: with an expiry, or with this error code. */
  reauthError: string | undefined;
  #tokens = 0;
  #meshPort = 0;

  static async start(): Promise<MeshServer> {
    const server = new MeshServer();
    const { ca, cert, key } = await localCertificate();
    const api = createHttpServer((request, response) => void server.#answer(request, response));
    const mesh = createHttpsServer({ cert, key }, (_request, response) => response.writeHead(426).end());
    const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'service.v1' });
    mesh.on('upgrade', (request, socket, head) => {
      const token = request.headers.authorization?.replace('Bearer ', '');
      server.tokensOffered.push(token);
      if (server.onUpgrade(socket)) return;
      if (token && server.refusedTokens.has(token)) {
        socket.end(refusedUpgrade({ status: 401, body: { error: 'no', code: 'UNAUTHORIZED' } }));
      } else sockets.handleUpgrade(request, socket, head, (ws) => server.#accept(ws, request));
    });
    for (const listener of [api, mesh]) await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      for (const socket of server.sockets) socket.terminate();
      api.close();
      api.closeAllConnections();
      mesh.close();
      mesh.closeAllConnections();
    });
    server.baseUrl = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
    server.#meshPort = (mesh.address() as AddressInfo).port;
    server.ca = ca;
    return server;
  }

  /** Where agents connect. */
  get meshAddress(): string {
    return `127.0.0.1:${this.#meshPort}`;
  }

  /** Sends a frame on the newest socket and returns its id. */
  send(type: string, payload: object, options: { id?: string; inReplyTo?: string } = {}): string {
    const id = options.id ?? randomUUID();
    const replyTo = options.inReplyTo ? { in_reply_to: options.inReplyTo } : {};
    this.sockets.at(-1)?.send(JSON.stringify({ v: 1, type, id, ts: new Date().toISOString(), ...replyTo, payload }));
    return id;
  }

  dispatch(
    text: string,
    more: {
      id?: string;
      metadata?: object;
      deadlineMs?: number;
      skillId?: string;
      parts?: object[];
      messageId?: string;
      /** Further members of the payload. */
      more?: object;
    } = {},
  ): string {
    const id = more.id ?? randomUUID();
    const message = {
      kind: 'message',
      messageId: more.messageId ?? 'msg_1',
      role: 'user',
      parts: more.parts ?? [{ kind: 'text', text }],
    };
    const payload = {
      jsonrpc: '2.0',
      id,
      method: 'message/stream',
      params: { message, ...(more.metadata && { metadata: more.metadata }) },
      dispatch_id: `dsp_${id}`,
      ...(more.skillId && { skill_id: more.skillId }),
      deadline_ms: more.deadlineMs ?? 60_000,
      attempt: 1,
      idempotency_key: `dsp_${id}`,
      session_context: {
        session_id: 'ses_1',
        tenant_id: 'ten_1',
        message_id: more.messageId ?? 'msg_1',
        propagation_headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
      },
      ...more.more,
    };
    this.#open.set(id, this.#instanceOf(this.sockets.at(-1)));
    return this.send('dispatch', payload, { id });
  }

  /** Frames of one type, of one dispatch where given. */
  of(type: string, inReplyTo?: string): FrameEnvelope[] {
    return this.frames.filter((frame) => frame.type === type && (!inReplyTo || frame.in_reply_to === inReplyTo));
  }

  /** Waits until `count` frames of a type are there and returns the last of those. */
  async frame(type: string, inReplyTo?: string, count = 1): Promise<FrameEnvelope> {
    return vi.waitFor(
      () => {
        const frame = this.of(type, inReplyTo)[count - 1];
        if (!frame) throw new Error(`no ${type} yet, only ${this.frames.map((each) => each.type).join(', ')}`);
        return frame;
      },
      { timeout: 10_000, interval: 5 },
    );
  }

  /** Withdraws a dispatch, or a call of a tool. */
  cancel(id: string): void {
    this.send('error', { code: 'CANCELED', message: 'canceled', retryable: false }, { inReplyTo: id });
  }

  /** The payload that ends a dispatch with a result, the `count`th where it was dispatched again. */
  async result(id: string, count = 1): Promise<DispatchResultPayload> {
    return (await this.frame('dispatch_result', id, count)).payload as unknown as DispatchResultPayload;
  }

  /** The payload of the error that ends a dispatch. */
  async failure(id: string): Promise<Record<string, unknown>> {
    return (await this.frame('error', id)).payload;
  }

  /** Calls a tool of the agent. @returns its result */
  async callTool(payload: object): Promise<Record<string, unknown>> {
    return (await this.frame('tool_result', this.send('tool_call', payload))).payload;
  }

  /** How many requests came to this path. */
  count(path: string): number {
    return this.requests.filter((request) => request.path === path).length;
  }

  #instanceOf(socket: WebSocket | undefined): string {
    return (socket && this.#instances.get(socket)) ?? '';
  }

  #accept(socket: WebSocket, request: IncomingMessage): void {
    this.sockets.push(socket);
    const instance = new URL(request.url ?? '', this.baseUrl).searchParams.get('instance_id') ?? '';
    this.#instances.set(socket, instance);
    socket.on('message', (data) => {
      const frame = FrameEnvelope.parse(JSON.parse(String(data)));
      AGENT_FRAME_PAYLOADS[frame.type as keyof typeof AGENT_FRAME_PAYLOADS].parse(frame.payload);
      this.frames.push(frame);
      if (this.isMute) return;
      if (frame.type === 'hello') this.#sendWelcome();
      if (frame.type === 'ping') this.send('pong', {}, { inReplyTo: frame.id });
      if (frame.type === 'reauth') this.#answerReauth(frame.id);
      if (frame.type === 'close_request') this.#closing.add(instance);
      if (frame.type === 'dispatch_result' || frame.type === 'error') this.#open.delete(frame.in_reply_to ?? '');
      const isIdle = !this.keepsIdleOpen && ![...this.#open.values()].includes(instance);
      if (this.#closing.has(instance) && isIdle) socket.close(1000);
    });
  }

  #answerReauth(inReplyTo: string): void {
    if (this.reauthError)
      this.send('error', { code: this.reauthError, message: 'no', retryable: false }, { inReplyTo });
    else this.send('reauth_ok', { token_expires_at: new Date(Date.now() + 3_600_000).toISOString() }, { inReplyTo });
  }

  #sendWelcome(): void {
    this.send('welcome', {
      connection_id: randomUUID(),
      mesh_id: 'mesh_1',
      resumed: false,
      replayed_dispatches: [],
      resume_token: `resume-${this.sockets.length}`,
      resume_window_ms: 45_000,
      heartbeat_interval_ms: 30_000,
      ping_interval_ms: 30_000,
      limits: { max_frame_bytes: 1_048_576, max_inflight: 256 },
      server_time: new Date().toISOString(),
      ...this.welcome,
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const body = JSON.parse(text) as Record<string, unknown>;
    const path = request.url ?? '';
    this.requests.push({ path, body, authorization: request.headers.authorization });
    const refusal = this.refusals.get(path);
    if (refusal) {
      response.writeHead(refusal.status, refusal.headers);
      response.end(typeof refusal.body === 'string' ? refusal.body : JSON.stringify(refusal.body));
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(path === '/auth/get_token' ? this.#token() : this.#registered(body)));
  }

  #token() {
    this.#tokens += 1;
    return {
      token: `token-${this.#tokens}`,
      token_type: 'Bearer',
      expires_in: this.tokenLifetimeSeconds,
      scopes: ['full'],
    };
  }

  /** As much of the answer as agents read. */
  #registered({ instance_id = 'chosen-1' }: Record<string, unknown>) {
    const connect_url = `wss://${this.meshAddress}/agents/connect`;
    const jwks_url = `${this.baseUrl}/.well-known/jwks.json`;
    return { ok: true, tenant_id: 'ten_1', instance_id, deployment_mode: 'connected', connect_url, jwks_url };
  }
}
