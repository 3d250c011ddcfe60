/** A way to a server on this machine that is as bad as networks are: it cuts connections, stands still and takes its time. */
import { createServer, connect as dial } from 'node:net';

const SLOW_SHARE = 0.2;
const DELAY_MS = [20, 200];
const between = ([from, to]) => from + Math.random() * (to - from);

/** One connection through the proxy. */
class Way {
  #client;
  #server;
  #stalled = false;
  #delayMs;

  constructor(client, port, onClosed) {
    this.#client = client;
    this.#server = dial(port, '127.0.0.1');
    this.#delayMs = Math.random() < SLOW_SHARE ? between(DELAY_MS) : 0;
    this.#carry(client, this.#server);
    this.#carry(this.#server, client);
    for (const each of [client, this.#server]) {
      each.setNoDelay(true);
      each.on('error', () => undefined); // the other half follows
      each.once('close', () => {
        this.cut();
        onClosed();
      });
    }
  }

  cut() {
    this.#client.destroy();
    this.#server.destroy();
  }

  /** Carries nothing for a while; what comes meanwhile waits in the sockets. */
  stall(ms) {
    if (this.#stalled) return;
    this.#stalled = true;
    this.#client.pause();
    this.#server.pause();
    setTimeout(() => {
      this.#stalled = false;
      this.#client.resume();
      this.#server.resume();
    }, ms).unref();
  }

  #carry(from, to) {
    let late = Promise.resolve();
    from.on('data', (bytes) => {
      if (this.#delayMs === 0) return this.#write(from, to, bytes);
      const due = new Promise((resolve) => setTimeout(resolve, this.#delayMs));
      late = late.then(() => due).then(() => this.#write(from, to, bytes));
    });
    from.on('end', () => void late.then(() => to.end()));
  }

  #write(from, to, bytes) {
    if (to.destroyed || to.write(bytes)) return;
    from.pause();
    to.once('drain', () => {
      if (!this.#stalled) from.resume();
    });
  }
}

/** Stands before one server, which may be away: a connection to it is then refused as it would be without the proxy. */
export class FaultyProxy {
  #ways = new Set();
  #server;
  faults = { cut: 0, stalled: 0 };

  /** @param {number} port of the server */
  static async start(port) {
    const proxy = new FaultyProxy();
    proxy.#server = createServer({ allowHalfOpen: true }, (client) => {
      const way = new Way(client, port, () => proxy.#ways.delete(way));
      proxy.#ways.add(way);
    });
    await new Promise((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port() {
    return this.#server.address().port;
  }

  /** Cuts one connection, whichever. */
  cutOne() {
    const way = this.#any();
    if (!way) return;
    this.faults.cut += 1;
    way.cut();
  }

  /** One connection, whichever, stands still for `ms`. */
  stallOne(ms) {
    const way = this.#any();
    if (!way) return;
    this.faults.stalled += 1;
    way.stall(ms);
  }

  close() {
    this.#server.close();
    for (const way of this.#ways) way.cut();
  }

  #any() {
    return [...this.#ways][Math.floor(Math.random() * this.#ways.size)];
  }
}
