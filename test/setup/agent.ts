import { readFileSync } from 'node:fs';
import { type RawData, WebSocket } from 'ws';
import type { DispatchPayload, WelcomePayload } from '../../contracts/frames.js';
import { uuidv7 } from '../../runtime/ids.js';
import { within } from './until.js';

export interface Frame {
  v: 1;
  type: string;
  id: string;
  ts: string;
  in_reply_to?: string | null;
  payload: Record<string, unknown>;
}

export interface RawConnectOptions {
  meshUrl: string;
  caFile: string;
  token: string;
  instanceId: string;
}

/** The handshake was answered with plain HTTP. */
class HandshakeRefused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(`handshake refused: ${status} ${code}`);
  }
}

/** Generous: a busy machine is not a failed test. */
const FRAME_TIMEOUT_MS = 20_000;

/** One socket to the mesh that does nothing of its own accord, except answering pings. */
export class RawAgent {
  readonly instanceId: string;
  readonly closed: Promise<{ code: number; reason: string }>;
  /** Every frame so far. */
  readonly received: Frame[] = [];
  readonly #socket: WebSocket;
  /** Received and not yet taken by `next`. */
  readonly #inbox: Frame[] = [];
  readonly #listeners = new Set<(frame: Frame) => void>();

  constructor(socket: WebSocket, instanceId: string) {
    this.#socket = socket;
    this.instanceId = instanceId;
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    socket.on('error', () => undefined); // 'close' follows and tells
    socket.on('message', (data) => this.#receive(data));
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** Sends a frame; gives its id. */
  send(type: string, payload: object, inReplyTo?: string): string {
    const id = uuidv7();
    this.sendRaw(JSON.stringify({ v: 1, type, id, ts: new Date().toISOString(), in_reply_to: inReplyTo, payload }));
    return id;
  }

  /** Sends these bytes as one message; a Buffer goes out as a binary one. */
  sendRaw(data: string | Buffer): void {
    if (this.isOpen) this.#socket.send(data);
  }

  onFrame(listener: (frame: Frame) => void): void {
    this.#listeners.add(listener);
  }

  /** The first frame that fits and was not taken before, now or when it comes. Rejects when the socket closes first. */
  async next(fits: (frame: Frame) => boolean, timeoutMs = FRAME_TIMEOUT_MS): Promise<Frame> {
    const index = this.#inbox.findIndex(fits);
    if (index >= 0) return this.#inbox.splice(index, 1)[0] as Frame;
    const arrival = new Promise<Frame>((resolve, reject) => {
      const listener = (frame: Frame) => {
        if (!fits(frame)) return;
        this.#listeners.delete(listener);
        this.#inbox.splice(this.#inbox.indexOf(frame), 1);
        resolve(frame);
      };
      this.#listeners.add(listener);
      void this.closed.then(({ code }) => reject(new Error(`the socket closed with ${code} before the frame came`)));
    });
    return within(arrival, timeoutMs, `a frame for ${this.instanceId}`);
  }

  nextOfType(type: string, timeoutMs?: number): Promise<Frame> {
    return this.next((frame) => frame.type === type, timeoutMs);
  }

  /** Says hello and waits for welcome. */
  async hello(extra: Record<string, unknown> = {}): Promise<WelcomePayload> {
    this.send('hello', { instance_id: this.instanceId, ...extra });
    return (await this.nextOfType('welcome')).payload as unknown as WelcomePayload;
  }

  close(code = 1000): void {
    this.#socket.close(code);
  }

  /** Cuts the connection, as a killed process would. */
  kill(): void {
    this.#socket.terminate();
  }

  #receive(data: RawData): void {
    const frame = JSON.parse(data.toString()) as Frame;
    if (frame.type === 'ping') this.send('pong', { nonce: frame.payload.nonce }, frame.id);
    this.received.push(frame);
    this.#inbox.push(frame);
    for (const listener of [...this.#listeners]) listener(frame);
  }
}

/** Opens a socket to the mesh; rejects with HandshakeRefused when it is not upgraded. Nothing is sent yet. */
export function connectRaw(options: RawConnectOptions): Promise<RawAgent> {
  const url = new URL('/agents/connect', options.meshUrl.replace(/^http/, 'ws'));
  url.searchParams.set('instance_id', options.instanceId);
  const socket = new WebSocket(url, 'service.v1', {
    ca: readFileSync(options.caFile),
    headers: { authorization: `Bearer ${options.token}` },
    handshakeTimeout: FRAME_TIMEOUT_MS,
  });
  const agent = new RawAgent(socket, options.instanceId);
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(agent));
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => reject(refusal(response.statusCode ?? 0, Buffer.concat(chunks).toString())));
    });
  });
}

function refusal(status: number, body: string): HandshakeRefused {
  try {
    return new HandshakeRefused(status, (JSON.parse(body) as { code: string }).code);
  } catch {
    return new HandshakeRefused(status, body.slice(0, 200));
  }
}

/** A dispatch as an agent sees it, with the ways to answer. */
export interface Dispatched {
  frame: Frame;
  payload: DispatchPayload;
  /** All text parts, joined. */
  text: string;
  result(result: unknown, extra?: Record<string, unknown>): void;
  ask(inputRequest: Record<string, unknown>): void;
  chunk(seq: number, text: string, last?: boolean): void;
  error(code: string, message?: string): void;
}

export function dispatched(agent: Pick<RawAgent, 'send'>, frame: Frame): Dispatched {
  const payload = frame.payload as unknown as DispatchPayload;
  const reply = (type: string, body: object) => void agent.send(type, body, frame.id);
  return {
    frame,
    payload,
    text: payload.params.message.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('\n'),
    result: (result, extra = {}) => reply('dispatch_result', { result, ...extra }),
    ask: (input_request) =>
      reply('dispatch_result', { result: '', status: { state: 'input-required', input_request } }),
    chunk: (seq, text, last = false) =>
      reply('dispatch_chunk', { seq, parts: [{ kind: 'text', text }], last_chunk: last }),
    error: (code, message = code) => reply('error', { code, message, retryable: false }),
  };
}

/** What an agent does with a dispatch. */
export type Behaviour = (dispatch: Dispatched) => void | Promise<void>;

/** Answers every dispatch of this socket by the behaviour. */
export function serve(agent: RawAgent, behaviour: Behaviour): void {
  agent.onFrame((frame) => {
    if (frame.type === 'dispatch') void behaviour(dispatched(agent, frame));
  });
}

/** Answers at once with what it was told. */
export const echo: Behaviour = (dispatch) => dispatch.result(`echo: ${dispatch.text}`);
/** Never answers. */
export const silent: Behaviour = () => undefined;
