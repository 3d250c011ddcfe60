import { z } from 'zod';
import type { Outbound } from '../../http/outbound.js';
import { signatureHeaders } from '../../http/webhook-signatures.js';
import { PlatformError } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import { newId } from '../../runtime/ids.js';
import type { Facts } from '../matching/facts.js';
import { celRequest } from './cel.js';

/** Concurrent requests of this process to evaluators, in all and for one tenant, and how many of a tenant wait; beyond, the evaluator has failed. */
const [AT_ONCE_MAX, OF_TENANT_MAX, WAITING_MAX] = [48, 8, 200];
const WAIT_MAX_MS = 2_000;
const RESPONSE_BYTES_MAX = 16 * 1024;

/** What an evaluator answers. `reason` replaces the policy's. */
const Answer = z.object({ applies: z.boolean(), reason: z.string().max(1024).optional() });
export type WebhookAnswer = z.infer<typeof Answer>;

/** An evaluator behind an address, with its secret in the clear. */
export interface WebhookTarget {
  policy_id: string;
  name: string;
  url: string;
  secret: string | undefined;
  timeout_ms: number;
}

/** Asks the evaluators of all tenants, each tenant in its turn. */
export class WebhookEvaluators {
  readonly #outbound: Pick<Outbound, 'request'>;
  readonly #turns = new FairSemaphore({
    limit: AT_ONCE_MAX,
    perKey: OF_TENANT_MAX,
    waitingMax: WAITING_MAX,
    waitMaxMs: WAIT_MAX_MS,
    refusal: () => new PlatformError('RATE_LIMITED', 'too many requests to evaluators at once'),
  });

  constructor(outbound: Pick<Outbound, 'request'>) {
    this.#outbound = outbound;
  }

  /**
   * Whether the policy applies, as its evaluator says.
   * @param dryRun for test_policy: the evaluator is told that nothing follows
   * @throws Error for anything but a 2xx with `{applies}` in time
   */
  ask(target: WebhookTarget, facts: Facts, dryRun: boolean): Promise<WebhookAnswer> {
    return this.#turns.run(facts.tenantId, () => this.#post(target, facts, dryRun));
  }

  /** Whether a further request of the tenant would wait. */
  isBusy(tenantId: string): boolean {
    return !this.#turns.hasRoom(tenantId);
  }

  async #post({ policy_id, name, url, secret, timeout_ms }: WebhookTarget, facts: Facts, dry_run: boolean) {
    const evaluation_id = newId('evl');
    const content = { evaluation_id, policy_id, policy_name: name, dry_run, request: celRequest(facts) };
    const body = Buffer.from(JSON.stringify(content));
    const signed = signatureHeaders(secret === undefined ? {} : { secret }, evaluation_id, body, Date.now());
    const response = await this.#outbound.request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...signed },
      body,
      timeoutMs: timeout_ms,
      maxResponseBytes: RESPONSE_BYTES_MAX,
    });
    if (response.status < 200 || response.status > 299) throw new Error(`the evaluator answered ${response.status}`);
    if (response.truncated) throw new Error('the answer of the evaluator is too long');
    return Answer.parse(JSON.parse(response.body.toString()));
  }
}
