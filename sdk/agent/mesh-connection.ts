import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { CLOSE_CODES } from '../../contracts/errors.js';
import type { ErrorPayload, FrameEnvelope, HelloPayload, WelcomePayload } from '../../contracts/frames.js';
import { SUBPROTOCOL } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { trusting } from '../trust.js';
import { decodeFrame, encodeFrame, type FrameFields, readWelcome } from './frames.js';
import { KeepAlive } from './keep-alive.js';

export interface ConnectionOptions {
  /** `wss` address with its `instance_id`. */
  url: string;
  token: string;
  ca?: string;
  hello: HelloPayload;
  /** Called once, before any other frame. */
  onWelcome(welcome: WelcomePayload): void;
  /** Frames about dispatches and tools, and `close_request`. */
  onFrame(frame: FrameEnvelope): void;
}

/** How a connection ended. */
export interface ConnectionEnd {
  /** Handshake status when it was refused, else undefined. */
  httpStatus?: number;
  /** WebSocket close code. */
  closeCode?: number;
  /** No connection was made at all: nobody answers at the address. */
  unreachable?: boolean;
  /** The platform's code, `''` when the socket was just lost. */
  code: string;
  message: string;
}

const HANDSHAKE_TIMEOUT_MS = 15_000;
const REFUSAL_BODY_BYTES = 4_096;

/** One WebSocket to the mesh, from the upgrade to its end. */
export class MeshConnection {
  /** Settles when the socket is gone; never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  readonly #socket: WebSocket;
  readonly #options: ConnectionOptions;
  #keepAlive: KeepAlive | null = null;
  #lastError: ErrorPayload | null = null;
  #refusal: Promise<ConnectionEnd> | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = new WebSocket(options.url, SUBPROTOCOL, {
      headers: { authorization: `Bearer ${options.token}` },
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxPayload: 2 * LIMITS.frameBytes,
      perMessageDeflate: false,
      ...(options.ca !== undefined && { secureContext: trusting(options.ca) }),
    });
    this.ended = this.#untilEnd();
    this.#socket.on('open', () => this.send('hello', options.hello));
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
    if (!frame) {
      this.send('error', { code: 'BAD_FRAME', message: 'not a frame of service.v1', retryable: false });
      this.close(CLOSE_CODES.PROTOCOL_ERROR);
    } else if (!this.#keepAlive && frame.type !== 'error') this.#welcome(frame);
    else if (frame.type === 'ping') this.send('pong', frame.payload, { inReplyTo: frame.id });
    else if (frame.type === 'pong') this.#keepAlive?.heard();
    else if (frame.type === 'error' && !frame.in_reply_to) this.#lastError = frame.payload as ErrorPayload;
    else this.#options.onFrame(frame);
  }

  #welcome(frame: FrameEnvelope): void {
    const welcome = frame.type === 'welcome' ? readWelcome(frame.payload) : null;
    if (!welcome) {
      this.close(CLOSE_CODES.PROTOCOL_ERROR);
      return;
    }
    this.#keepAlive = new KeepAlive(welcome.ping_interval_ms, {
      ping: () => this.send('ping', {}),
      dead: () => this.cut(),
    });
    this.#options.onWelcome(welcome);
  }

  #untilEnd(): Promise<ConnectionEnd> {
    return new Promise((resolve) => {
      let failure = '';
      let opened = false;
      this.#socket.on('open', () => {
        opened = true;
      });
      this.#socket.on('unexpected-response', (_request, response) => {
        this.#refusal = readRefusal(response);
        void this.#refusal.then(() => this.cut());
      });
      this.#socket.on('error', (error) => {
        failure = error.message;
      });
      this.#socket.on('close', (closeCode, reason) => {
        this.#keepAlive?.stop();
        const { code = '', message = failure || reason.toString() } = this.#lastError ?? {};
        const unreachable = !opened;
        resolve(this.#refusal ?? { closeCode, code, message, ...(unreachable && { unreachable }) });
      });
    });
  }
}

/** The handshake's refusal: a plain HTTP answer with a JSON body. */
async function readRefusal(response: IncomingMessage): Promise<ConnectionEnd> {
  let text = '';
  try {
    for await (const chunk of response) {
      text += String(chunk);
      if (text.length > REFUSAL_BODY_BYTES) break;
    }
    const body = JSON.parse(text) as { code?: string; error?: string };
    return { httpStatus: response.statusCode ?? 0, code: body.code ?? '', message: body.error ?? '' };
  } catch {
    return { httpStatus: response.statusCode ?? 0, code: '', message: `HTTP ${response.statusCode}` };
  }
}
