import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, BlockList, isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { answerClientError } from '../../http/client-error.js';
import type { Certificate } from './certificate-reload.js';
import { needsUpgrade } from './handshake.js';
import { refuseUpgrade, respondWithError } from './http-answer.js';

/** First byte of a TLS connection: a handshake record. */
const TLS_HANDSHAKE = 0x16;
/** A client that sends nothing for this long is disconnected. */
const FIRST_BYTE_MS = 10_000;
/** Time between the first byte and the end of the TLS handshake. */
const HANDSHAKE_MS = 15_000;
const MIN_VERSION = 'TLSv1.2';
const HEADERS_MS = 15_000;
const REQUEST_MS = 60_000;
/** Connections that the system queues until they are accepted: agents of a dead node reconnect all at once. */
const BACKLOG = 4_096;
/** TLS handshakes that are started in one turn of the event loop: each takes a millisecond or two of CPU. */
const HANDSHAKES_PER_TURN = 4;

export interface FrontOptions {
  /** Undefined behind a proxy that ends TLS. */
  tls: Certificate | undefined;
  /** 15,000 by default. */
  handshakeTimeoutMs?: number;
  /** Proxies whose `X-Forwarded-Proto` counts. */
  trustProxyCidrs: readonly string[];
  /** Origins whose pages may read what is answered here (CORS). */
  corsOrigins: readonly string[];
  onRequest(request: IncomingMessage, response: ServerResponse): void;
  onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/**
 * One port for TLS and plain HTTP, which the first byte distinguishes. Plain HTTP is answered with 426, unless a trusted proxy says that it
 * came over TLS, or it asks about health.
 */
export class Front {
  readonly #tcp: net.Server;
  readonly #secure: https.Server | undefined;
  readonly #plain: http.Server;
  readonly #sockets = new Set<Socket>();
  /** Connections that wait for their TLS handshake, oldest first. */
  readonly #awaitingTls: Socket[] = [];

  constructor(options: FrontOptions) {
    const trusted = parseCidrs(options.trustProxyCidrs);
    const { corsOrigins: origins } = options;
    const onClientError = (error: Error, socket: Duplex) => answerClientError(error, socket as Socket, origins);
    const limits = { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS };
    this.#plain = http.createServer(limits, (request, response) => {
      if (cameOverTls(request, trusted) || asksForHealth(request)) options.onRequest(request, response);
      else respondWithError(request, response, { error: needsUpgrade(), origins });
    });
    this.#plain.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (cameOverTls(request, trusted)) options.onUpgrade(request, socket, head);
      else refuseUpgrade(request, socket, needsUpgrade());
    });
    this.#plain.on('clientError', onClientError);
    if (options.tls) {
      const handshakeTimeout = options.handshakeTimeoutMs ?? HANDSHAKE_MS;
      const secured = { ...limits, ...options.tls, minVersion: MIN_VERSION, handshakeTimeout } as const;
      this.#secure = https.createServer(secured, options.onRequest);
      this.#secure.on('upgrade', options.onUpgrade);
      this.#secure.on('clientError', onClientError);
      // An answer to a client whose handshake failed would wait for the handshake.
      this.#secure.on('tlsClientError', (_error, socket) => socket.destroy());
    }
    // These servers get their connections from `#tcp`; without this event they would not enforce their time limits.
    this.#plain.emit('listening');
    this.#secure?.emit('listening');
    this.#tcp = net.createServer((socket) => this.#accept(socket));
  }

  /** Has TLS handshakes from here on use another certificate. Connections that exist stay. */
  useCertificate({ cert, key }: Certificate): void {
    this.#secure?.setSecureContext({ cert, key, minVersion: MIN_VERSION });
  }

  /** @returns the port that it listens on */
  async listen(host: string, port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#tcp.once('error', reject);
      this.#tcp.listen({ port, host, backlog: BACKLOG }, resolve);
    });
    return (this.#tcp.address() as AddressInfo).port;
  }

  /** New connections are refused from here on; those that exist stay. */
  stopListening(): void {
    this.#tcp.close();
  }

  /** Stops listening and destroys every connection. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#tcp.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    this.#plain.close();
    this.#secure?.close();
    await closed;
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy()); // resets need no log line
    const silence = setTimeout(() => socket.destroy(), FIRST_BYTE_MS);
    socket.once('close', () => clearTimeout(silence));
    socket.once('data', (chunk) => {
      clearTimeout(silence);
      socket.pause();
      socket.unshift(chunk);
      if (this.#secure && chunk[0] === TLS_HANDSHAKE) this.#queueTls(socket);
      else {
        this.#plain.emit('connection', socket);
        socket.resume();
      }
    });
  }

  /** A thousand handshakes at once must not delay the agents that are connected. */
  #queueTls(socket: Socket): void {
    this.#awaitingTls.push(socket);
    if (this.#awaitingTls.length === 1) setImmediate(() => this.#startTls());
  }

  #startTls(): void {
    for (const socket of this.#awaitingTls.splice(0, HANDSHAKES_PER_TURN)) {
      if (!socket.destroyed) this.#secure?.emit('connection', socket);
    }
    if (this.#awaitingTls.length > 0) setImmediate(() => this.#startTls());
  }
}

function parseCidrs(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', bits] = cidr.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return list;
}

/** Balancers ask whether the process is ready, over TLS or not. */
function asksForHealth({ method, url }: IncomingMessage): boolean {
  return method === 'GET' && url?.split('?', 1)[0] === OPERATIONS.health.path;
}

function cameOverTls(request: IncomingMessage, trusted: BlockList): boolean {
  const address = request.socket.remoteAddress ?? '';
  if (!trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return false;
  return request.headers['x-forwarded-proto'] === 'https';
}
