import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { cleanUp } from '../clean-up.js';

/** What a proxy does with what passes. */
interface Taps {
  /** Made for each connection; gets what the client sends. */
  reader?(): (chunk: Buffer) => void;
  /** Whether a piece that the server sends arrives. */
  arrives?(chunk: Buffer): boolean;
}

/** A port of this machine that passes connections on to a server of this machine, and can cut them. Closed after the test or the file. */
export class TcpProxy {
  /** How long everything that the server sends takes to arrive. */
  latencyMs = 0;
  /** New connections are cut as well. */
  isShut = false;
  /** New connections are taken, and nothing passes. */
  isSilent = false;
  /** The clients' ends, with those of the server. */
  readonly #pairs = new Map<Socket, Socket>();
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((near) => this.#pass(near));
  readonly #targetPort: () => number;
  readonly #taps: Taps;

  private constructor(targetPort: () => number, taps: Taps) {
    this.#targetPort = targetPort;
    this.#taps = taps;
  }

  /** @param target the server, by its URL or by what gives its port at each connection */
  static async to(target: string | (() => number), taps: Taps = {}): Promise<TcpProxy> {
    const proxy = new TcpProxy(typeof target === 'string' ? () => Number(new URL(target).port) : target, taps);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    cleanUp(() => proxy.close());
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** This URL by way of the proxy. */
  urlOf(url: string): string {
    const proxied = new URL(url);
    proxied.host = `127.0.0.1:${this.port}`;
    return proxied.href;
  }

  /** Cuts every connection; new ones are let through unless the proxy is shut. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts every connection and those that come, until `isShut` is false again. */
  shut(): void {
    this.isShut = true;
    this.cut();
  }

  /**
   * The server goes without a word, as a machine does that loses its power: it forgets its connections, clients hear nothing more on theirs, and
   * nothing on new ones until `isSilent` is false again.
   */
  silence(): void {
    this.isSilent = true;
    for (const [near, far] of this.#pairs) {
      this.#pairs.delete(near);
      near.unpipe(far).resume();
      far.destroy();
    }
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  #pass(near: Socket): void {
    if (this.isSilent) {
      this.#keep(near);
      near.resume();
      return;
    }
    const far = connect(this.#targetPort(), '127.0.0.1');
    this.#pairs.set(near, far);
    this.#keep(near).once('close', () => {
      this.#pairs.delete(near);
      far.destroy();
    });
    this.#keep(far).once('close', () => {
      if (this.#pairs.delete(near)) near.destroy();
    });
    if (this.isShut) near.destroy();
    const read = this.#taps.reader?.();
    if (read) near.on('data', read);
    let arrived = Promise.resolve<unknown>(undefined);
    const arriving = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const delayed = this.latencyMs === 0 ? undefined : delay(this.latencyMs);
        arrived = arrived.then(() => delayed).then(() => (this.#taps.arrives?.(chunk) ?? true) && arriving.push(chunk));
        done();
      },
      flush: (done) => void arrived.then(() => done()),
    });
    near.pipe(far).pipe(arriving).pipe(near);
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket.setNoDelay());
    socket.on('error', () => undefined); // 'close' follows
    return socket.once('close', () => this.#sockets.delete(socket));
  }
}
