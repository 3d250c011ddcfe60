/** A TCP proxy in front of a local server that cuts, stalls and delays connections. */
import { createServer, connect as dial } from 'node:net';
import { between, randomOf } from './pace.mjs';

const SLOW_SHARE = 0.2;
const DELAY_MS = [20, 200];

/** One connection through the proxy. */
class ProxiedConnection {
  #client;
  #server;
  #stalled = false;
  #delayMs;

  constructor(client, port, onClosed) {
    this.#client = client;
    this.#server = dial(port, '127.0.0.1');
    this.#delayMs = Math.random() < SLOW_SHARE ? between(DELAY_MS) : 0;
    this.#forward(client, this.#server);
    this.#forward(this.#server, client);
    for (const each of [client, this.#server]) {
      each.setNoDelay(true);
      each.on('error', () => undefined); // 'close' follows and ends the other half
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

  /** Forwards nothing for `ms`; received bytes wait in the sockets. */
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

  #forward(from, to) {
    let delayed = Promise.resolve();
    from.on('data', (bytes) => {
      if (this.#delayMs === 0) return this.#write(from, to, bytes);
      const due = new Promise((resolve) => setTimeout(resolve, this.#delayMs));
      delayed = delayed.then(() => due).then(() => this.#write(from, to, bytes));
    });
    from.on('end', () => void delayed.then(() => to.end()));
  }

  #write(from, to, bytes) {
    if (to.destroyed || to.write(bytes)) return;
    from.pause();
    to.once('drain', () => {
      if (!this.#stalled) from.resume();
    });
  }
}

/** Proxies one server. While the server is down, connections to the proxy are closed. */
export class FaultyProxy {
  #connections = new Set();
  #server;
  faults = { cut: 0, stalled: 0 };

  /** @param {number} port of the server */
  static async start(port) {
    const proxy = new FaultyProxy();
    proxy.#server = createServer({ allowHalfOpen: true }, (client) => {
      const connection = new ProxiedConnection(client, port, () => proxy.#connections.delete(connection));
      proxy.#connections.add(connection);
    });
    await new Promise((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port() {
    return this.#server.address().port;
  }

  /** Cuts a random connection. */
  cutOne() {
    const connection = this.#random();
    if (!connection) return;
    this.faults.cut += 1;
    connection.cut();
  }

  /** Stalls a random connection for `ms`. */
  stallOne(ms) {
    const connection = this.#random();
    if (!connection) return;
    this.faults.stalled += 1;
    connection.stall(ms);
  }

  close() {
    this.#server.close();
    for (const connection of this.#connections) connection.cut();
  }

  #random() {
    return randomOf([...this.#connections]);
  }
}
