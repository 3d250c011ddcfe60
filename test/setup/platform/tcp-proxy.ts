import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';
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

  close(): void {
    this.#server.close();
    this.cut();
  }

  #pass(near: Socket): void {
    const far = connect(this.#targetPort(), '127.0.0.1');
    for (const [socket, other] of [[near, far] as const, [far, near] as const]) {
      this.#sockets.add(socket.setNoDelay());
      socket.on('error', () => undefined); // 'close' follows
      socket.once('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    if (this.isShut) near.destroy();
    const read = this.#taps.reader?.();
    if (read) near.on('data', read);
    const arriving = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const piece = (this.#taps.arrives?.(chunk) ?? true) ? chunk : undefined;
        if (this.latencyMs === 0) done(null, piece);
        else setTimeout(() => done(null, piece), this.latencyMs);
      },
    });
    near.pipe(far).pipe(arriving).pipe(near);
  }
}
