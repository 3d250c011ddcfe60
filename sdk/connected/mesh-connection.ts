import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { ErrorPayload, FrameEnvelope, HelloPayload, WelcomePayload } from '../../contracts/frames.js';
import { SUBPROTOCOL } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { secureContextFor } from '../tls.js';
import { decodeFrame, encodeFrame, type FrameFields, readWelcome } from './frames.js';
import { KeepAlive } from './keep-alive.js';

export interface ConnectionOptions {
  /** `wss` address, including the `instance_id` parameter. */
  url: string;
  token: string;
  ca?: string;
  hello: HelloPayload;
  /** Time limit for the handshake, and again for `welcome`. */
  handshakeTimeoutMs: number;
  /** Called once, before `onFrame`. */
  onWelcome(welcome: WelcomePayload): void;
  /** Called with frames about dispatches and tools, and with `close_request`. */
  onFrame(frame: FrameEnvelope): void;
}

/** How a connection ended. */
export interface ConnectionEnd {
  /** HTTP status of a refused handshake. */
  httpStatus?: number;
  /** `Retry-After` of a refused handshake. */
  retryAfterMs?: number;
  /** WebSocket close code. */
  closeCode?: number;
  /** The handshake did not complete: the mesh may have moved. */
  nothingSent?: boolean;
  /** The handshake or `welcome` exceeded its time limit. */
  timedOut?: boolean;
  /** Network or TLS error. */
  error?: Error;
  /** The platform's code; `''` when the connection was lost without one. */
  code: string;
  message: string;
}

const REFUSAL_BODY_BYTES = 4_096;

/** One WebSocket to the mesh, from the upgrade to its end. */
export class MeshConnection {
  /** Resolves when the socket is closed; never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  readonly #socket: WebSocket;
  readonly #options: ConnectionOptions;
  /** Runs until `welcome`. */
  readonly #handshakeTimer: NodeJS.Timeout;
  #isOpen = false;
  #timedOut = false;
  /** Why this side ended the connection; empty when it did not. */
  #reason = '';
  #error: Error | undefined;
  #keepAlive: KeepAlive | null = null;
  /** The last frame, if it was an `error` frame that explains the end of the connection. */
  #lastError: ErrorPayload | null = null;
  #refusal: Promise<ConnectionEnd> | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = new WebSocket(options.url, SUBPROTOCOL, {
      headers: { authorization: `Bearer ${options.token}` },
      maxPayload: 2 * LIMITS.frameBytes,
      perMessageDeflate: false,
      ...(options.ca !== undefined && { secureContext: secureContextFor(options.ca) }),
    });
    this.#handshakeTimer = setTimeout(() => this.#timeOut(), options.handshakeTimeoutMs);
    this.ended = this.#waitForEnd();
    this.#socket.on('open', () => {
      this.#isOpen = true;
      this.#handshakeTimer.refresh();
      this.send('hello', options.hello);
    });
    this.#socket.on('message', (data, isBinary) => this.#receive(data.toString(), isBinary));
  }

  /** Bytes that were sent but not yet written to the network. */
  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** Sends a frame; drops it when the socket is not open. `onSent` runs when the frame was written to the network. */
  send(type: string, payload: object, fields: FrameFields = {}, onSent?: () => void): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(encodeFrame(type, payload, fields), (error) => {
      if (!error) onSent?.();
    });
  }

  /** Starts the closing handshake; `ws` cuts the connection when the mesh does not answer it. */
  close(code: number): void {
    this.#socket.close(code);
  }

  /** Cuts the connection without a closing handshake, so that the mesh keeps its dispatches for a resume. */
  cut(): void {
    this.#socket.terminate();
  }

  #receive(text: string, isBinary: boolean): void {
    const frame = isBinary ? null : decodeFrame(text);
    this.#keepAlive?.frameReceived();
    this.#lastError = frame && explainsEnd(frame) ? (frame.payload as ErrorPayload) : null;
    if (!frame) {
      this.send('error', { code: 'BAD_FRAME', message: 'not a frame of service.v1', retryable: false });
      this.#closeWith('it sent an invalid service.v1 frame');
    } else if (!this.#keepAlive && frame.type !== 'error') this.#welcome(frame);
    else if (frame.type === 'ping') this.send('pong', frame.payload, { inReplyTo: frame.id });
    else if (frame.type === 'pong' || (frame.type === 'error' && !frame.in_reply_to)) return;
    else this.#options.onFrame(frame);
  }

  #welcome(frame: FrameEnvelope): void {
    const welcome = frame.type === 'welcome' ? readWelcome(frame.payload) : null;
    if (!welcome) {
      this.#closeWith('it sent an invalid welcome');
      return;
    }
    clearTimeout(this.#handshakeTimer);
    this.#keepAlive = new KeepAlive(welcome.ping_interval_ms, {
      ping: () => this.send('ping', {}),
      dead: () => this.#cutWith('it does not answer pings'),
    });
    this.#options.onWelcome(welcome);
  }

  #timeOut(): void {
    this.#timedOut = true;
    const what = this.#isOpen ? 'welcome' : 'answer to the handshake';
    this.#cutWith(`no ${what} within ${this.#options.handshakeTimeoutMs} ms`);
  }

  #closeWith(reason: string): void {
    this.#reason = reason;
    this.close(CLOSE_CODES.BAD_FRAME);
  }

  #cutWith(reason: string): void {
    this.#reason = reason;
    this.cut();
  }

  #waitForEnd(): Promise<ConnectionEnd> {
    return new Promise((resolve) => {
      this.#socket.on('unexpected-response', (_request, response) => {
        this.#refusal = readRefusal(response);
        void this.#refusal.then(() => this.cut());
      });
      this.#socket.on('error', (error) => {
        this.#error = error;
      });
      this.#socket.on('close', (closeCode, reason) => {
        clearTimeout(this.#handshakeTimer);
        this.#keepAlive?.stop();
        resolve(this.#refusal ?? this.#end(closeCode, reason.toString()));
      });
    });
  }

  #end(closeCode: number, closeReason: string): ConnectionEnd {
    const { code = '', message = this.#reason || this.#error?.message || closeReason } = this.#lastError ?? {};
    const error = this.#reason === '' ? this.#error : undefined; // when this side cut the socket, ws reports only that
    return { closeCode, nothingSent: !this.#isOpen, timedOut: this.#timedOut, code, message, ...(error && { error }) };
  }
}

/** Whether an `error` frame explains the end of the connection. One about a dispatch or call does so only with `BAD_FRAME`. */
function explainsEnd({ type, in_reply_to, payload }: FrameEnvelope): boolean {
  return type === 'error' && (!in_reply_to || payload.code === 'BAD_FRAME');
}

/** Reads a refused handshake: an HTTP answer with a JSON body. */
async function readRefusal(response: IncomingMessage): Promise<ConnectionEnd> {
  const httpStatus = response.statusCode ?? 0;
  const seconds = Number(response.headers['retry-after']);
  const refusal = { httpStatus, ...(seconds > 0 && { retryAfterMs: seconds * 1000 }) };
  let text = '';
  try {
    for await (const chunk of response) {
      text += String(chunk);
      if (text.length > REFUSAL_BODY_BYTES) break;
    }
    const body = JSON.parse(text) as { code?: string; error?: string };
    return { ...refusal, code: body.code ?? '', message: body.error ?? '' };
  } catch {
    return { ...refusal, code: '', message: `HTTP ${httpStatus}` }; // not JSON, for example a proxy's page: only the status is known
  }
}
