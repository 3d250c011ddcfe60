/** The HTTP receiver of a campaign: takes deliveries of alert rules and push notifications, and refuses the first attempt of some. */
import { createServer } from 'node:http';

/** Of so many deliveries one is answered with 503 at its first attempt, so that retries happen too. */
const REFUSED_SHARE = 10;

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

export class Receiver {
  /** Delivered events: `TENANT/EVENT_TYPE/MESSAGE_ID/REQUEST_ID`, with the ids of the deliveries that brought each. */
  alerts = new Map();
  /** Pushed states, in the order in which they came, by message id. */
  pushes = new Map();
  #refused = new Set();
  #count = 0;
  #server = createServer((request, response) => void this.#answer(request, response));

  static async start(harness) {
    const receiver = new Receiver();
    await new Promise((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    harness.onStop(async () => {
      receiver.#server.close();
      receiver.#server.closeAllConnections();
    });
    return receiver;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  async #answer(request, response) {
    try {
      const body = await bodyOf(request);
      response.writeHead(request.url === '/push' ? this.#push(body) : this.#alert(body)).end();
    } catch (error) {
      // A request that broke off, with a process that was killed; the platform sends it again.
      if (!request.destroyed) throw error;
    }
  }

  #push({ id, status }) {
    this.pushes.set(id, [...(this.pushes.get(id) ?? []), status.state]);
    return 204;
  }

  #alert({ delivery_id: id, tenant_id, event_type, event }) {
    if (!this.#refused.has(id) && ++this.#count % REFUSED_SHARE === 0) {
      this.#refused.add(id);
      return 503;
    }
    const key = [tenant_id, event_type, event.message_id, event.request_id ?? ''].join('/');
    const ids = this.alerts.get(key) ?? new Set();
    this.alerts.set(key, ids.add(id));
    return 204;
  }
}
