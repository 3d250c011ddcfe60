import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { ErrorPayload, FrameEnvelope, HelloPayload, WelcomePayload } from '../../contracts/frames.js';
import { SUBPROTOCOL } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { trusting } from '../tls.js';
import { decodeFrame, encodeFrame, type FrameFields, readWelcome } from './frames.js';
import { KeepAlive } from './keep-alive.js';

export interface ConnectionOptions {
  /** `wss` address with its `instance_id`. */
  url: string;
  token: string;
  ca?: string;
  hello: HelloPayload;
  /** How long the mesh may take for the handshake, and again for `welcome`. */
  handshakeTimeoutMs: number;
  /** Called once, before any other frame. */
  onWelcome(welcome: WelcomePayload): void;
  /** Frames about dispatches and tools, and `close_request`. */
  onFrame(frame: FrameEnvelope): void;
}

/** How a connection ended. */
export interface ConnectionEnd {
  /** Handshake status when it was refused, else undefined. */
  httpStatus?: number;
  /** What `Retry-After` asked for with it. */
  retryAfterMs?: number;
  /** WebSocket close code. */
  closeCode?: number;
  /** The handshake did not come to its end: the mesh may be elsewhere by now. */
  nothingSent?: boolean;
  /** The mesh took too long for the handshake or `welcome`. */
  timedOut?: boolean;
  /** Of the network or TLS. */
  error?: Error;
  /** The platform's code, `''` when the socket was just lost. */
  code: string;
  message: string;
}

const REFUSAL_BODY_BYTES = 4_096;

/** One WebSocket to the mesh, from the upgrade to its end. */
export class MeshConnection {
  /** Settles when the socket is gone; never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  readonly #socket: WebSocket;
  readonly #options: ConnectionOptions;
  /** Runs until `welcome`. */
  readonly #handshake: NodeJS.Timeout;
  #isOpen = false;
  #timedOut = false;
  /** Why this side ended it; else what the network said. */
  #reason = '';
  #error: Error | undefined;
  #keepAlive: KeepAlive | null = null;
  /** The `error` frame that was the last frame of all: it explains the end. */
  #lastError: ErrorPayload | null = null;
  #refusal: Promise<ConnectionEnd> | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = new WebSocket(options.url, SUBPROTOCOL, {
      headers: { authorization: `Bearer ${options.token}` },
      maxPayload: 2 * LIMITS.frameBytes,
      perMessageDeflate: false,
      ...(options.ca !== undefined && { secureContext: trusting(options.ca) }),
    });
    this.#handshake = setTimeout(() => this.#timeOut(), options.handshakeTimeoutMs);
    this.ended = this.#untilEnd();
    this.#socket.on('open', () => {
      this.#isOpen = true;
      this.#handshake.refresh();
      this.send('hello', options.hello);
    });
    this.#socket.on('message', (data, isBinary) => this.#receive(data.toString(), isBinary));
  }

  /** Bytes handed over that the network has not taken yet. */
  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** Sends a frame; one for a socket that is gone is dropped. `onSent` runs when the network took it. */
  send(type: string, payload: object, fields: FrameFields = {}, onSent?: () => void): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(encodeFrame(type, payload, fields), (error) => {
      if (!error) onSent?.();
    });
  }

  /** Closes in the orderly way; cuts the connection where the mesh does not answer. */
  close(code: number): void {
    this.#socket.close(code);
  }

  /** Cuts the connection, so that the mesh keeps its dispatches for a resume. */
  cut(): void {
    this.#socket.terminate();
  }

  #receive(text: string, isBinary: boolean): void {
    const frame = isBinary ? null : decodeFrame(text);
    this.#keepAlive?.heard();
    this.#lastError = frame && explainsEnd(frame) ? (frame.payload as ErrorPayload) : null;
    if (!frame) {
      this.send('error', { code: 'BAD_FRAME', message: 'not a frame of service.v1', retryable: false });
      this.#breakOff('it sent what is no frame of service.v1');
    } else if (!this.#keepAlive && frame.type !== 'error') this.#welcome(frame);
    else if (frame.type === 'ping') this.send('pong', frame.payload, { inReplyTo: frame.id });
    else if (frame.type === 'pong' || (frame.type === 'error' && !frame.in_reply_to)) return;
    else this.#options.onFrame(frame);
  }

  #welcome(frame: FrameEnvelope): void {
    const welcome = frame.type === 'welcome' ? readWelcome(frame.payload) : null;
    if (!welcome) {
      this.#breakOff('its welcome is not one of service.v1');
      return;
    }
    clearTimeout(this.#handshake);
    this.#keepAlive = new KeepAlive(welcome.ping_interval_ms, {
      ping: () => this.send('ping', {}),
      dead: () => this.#giveUp('it answers no pings'),
    });
    this.#options.onWelcome(welcome);
  }

  #timeOut(): void {
    this.#timedOut = true;
    const what = this.#isOpen ? 'welcome' : 'answer to the handshake';
    this.#giveUp(`no ${what} within ${this.#options.handshakeTimeoutMs} ms`);
  }

  #breakOff(reason: string): void {
    this.#reason = reason;
    this.close(CLOSE_CODES.PROTOCOL_ERROR);
  }

  #giveUp(reason: string): void {
    this.#reason = reason;
    this.cut();
  }

  #untilEnd(): Promise<ConnectionEnd> {
    return new Promise((resolve) => {
      this.#socket.on('unexpected-response', (_request, response) => {
        this.#refusal = readRefusal(response);
        void this.#refusal.then(() => this.cut());
      });
      this.#socket.on('error', (error) => {
        this.#error = error;
      });
      this.#socket.on('close', (closeCode, reason) => {
        clearTimeout(this.#handshake);
        this.#keepAlive?.stop();
        resolve(this.#refusal ?? this.#end(closeCode, reason.toString()));
      });
    });
  }

  #end(closeCode: number, closeReason: string): ConnectionEnd {
    const { code = '', message = this.#reason || this.#error?.message || closeReason } = this.#lastError ?? {};
    const error = this.#reason === '' ? this.#error : undefined; // of our own cut ws says that it was cut
    return { closeCode, nothingSent: !this.#isOpen, timedOut: this.#timedOut, code, message, ...(error && { error }) };
  }
}

/** An `error` frame about one dispatch explains no end, but for the one that broke the protocol. */
function explainsEnd({ type, in_reply_to, payload }: FrameEnvelope): boolean {
  return type === 'error' && (!in_reply_to || payload.code === 'BAD_FRAME');
}

/** The handshake's refusal: a plain HTTP answer with a JSON body. */
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
    return { ...refusal, code: '', message: `HTTP ${httpStatus}` }; // a proxy's page: the status says enough
  }
}
