import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { AlertRule, FleetClient } from '../../sdk/index.js';

const DELIVERY_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

/** The part of a delivery that the demo uses. */
export interface ApprovalDelivery {
  type: string;
  callback_token: string;
  resolve_url: string;
  event: { message_id: string; title: string };
}

/** The system that is told of approvals: a small HTTP server that trusts nothing without a signature. */
export class WebhookReceiver {
  readonly #secret = randomBytes(24).toString('base64url');
  readonly #arrived: ApprovalDelivery[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks);
        const isValid = this.#isSigned(body, String(request.headers['x-service-signature']));
        if (isValid) this.#arrived.push(JSON.parse(body.toString()) as ApprovalDelivery);
        response.writeHead(isValid ? 204 : 401).end();
      });
    });
  }

  #isSigned(body: Buffer, signature: string): boolean {
    const expected = Buffer.from(createHmac('sha256', this.#secret).update(body).digest('hex'));
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  /** Creates the rule that delivers approvals to this receiver. */
  async subscribe(client: FleetClient): Promise<AlertRule> {
    const { port } = this.#server.address() as AddressInfo;
    const config = { url: `http://127.0.0.1:${port}/approvals`, secret: this.#secret };
    return client.policies.newAlert({
      name: 'Demo approvals',
      condition: { event: 'message.input_required' },
      notifications: [{ type: 'webhook', config }],
    });
  }

  /** The delivery about a message, once it has arrived. */
  async deliveryOf(messageId: string): Promise<ApprovalDelivery> {
    const deadline = Date.now() + DELIVERY_TIMEOUT_MS;
    while (Date.now() < deadline) {
      const found = this.#arrived.find(({ event }) => event.message_id === messageId);
      if (found) return found;
      await delay(POLL_MS);
    }
    throw new Error(`no webhook about ${messageId} has arrived`);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
