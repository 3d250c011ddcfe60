import type { Channel } from '../deliveries/channels/channel-store.js';
import type { ChannelClients } from '../deliveries/channels/clients.js';
import { attemptChannel } from '../deliveries/channels/send.js';
import type { Envelope } from '../deliveries/envelope.js';
import { PlatformError } from '../runtime/errors.js';
import { FairSemaphore } from '../runtime/fair-semaphore.js';
import { newId } from '../runtime/ids.js';
import { envelopeOf } from './firings.js';
import type { StoredRule } from './rules.js';

/** How a test notification went. */
export interface TestResult {
  type: string;
  ok: boolean;
  /** For people. */
  message: string;
}

const PROBLEMS: Record<string, string> = {
  FORBIDDEN_ADDRESS: 'its name resolves to an address that is not public',
  CONNECT_FAILED: 'no connection could be opened',
  TIMEOUT: 'it did not answer in time',
  REDIRECT: 'it answered with a redirect, which is not followed',
  BROKEN: 'the connection broke before the answer was complete',
  RECIPIENT_REFUSED: 'the mail server refused a recipient',
  SMTP_NOT_CONFIGURED: 'the platform has no mail server (SMTP_URL)',
};

async function testChannel(clients: ChannelClients, channel: Channel, { row }: StoredRule): Promise<TestResult> {
  if (channel.unreadable)
    return { type: channel.type, ok: false, message: 'not delivered: its secrets cannot be read, set them anew' };
  const { rule_id, name: rule_name, threshold, window_seconds, tenant_id } = row;
  const reported = {
    event_id: '',
    event_type: 'system.alert_triggered',
    timestamp: new Date().toISOString(),
    tenant_id,
    session_id: '',
    event: { rule_id, rule_name, threshold, window_seconds, count: 0 },
  };
  const deliveryId = newId('dlv');
  const envelope = { ...envelopeOf({ rule: row, reported }, deliveryId, { baseUrl: '' }), test: true as const };
  const body = Buffer.from(JSON.stringify(envelope satisfies Envelope));
  const { result, outcome } = await attemptChannel(
    clients,
    channel,
    { deliveryId, body },
    new AbortController().signal,
  );
  const { status_code, error, duration_ms } = result;
  if (outcome === 'accepted') return { type: channel.type, ok: true, message: `delivered in ${duration_ms} ms` };
  const problem = (error && (PROBLEMS[error] ?? error)) || `it answered ${status_code}`;
  return { type: channel.type, ok: false, message: `not delivered: ${problem}` };
}

/** Calls at once, on this node and of one tenant: each makes ten attempts of ten seconds at most, so that it has its turn by then, or never. */
const BOUNDS = { limit: 20, perKey: 2, waitingMax: 2, waitMaxMs: 15_000 };
const RETRY_AFTER = { headers: { 'Retry-After': '10' } };

/** Sends test notifications. They take no delivery slots, so that they go out at once; their own bound is that of calls. */
export class TestAlerts {
  readonly #calls = new FairSemaphore({
    ...BOUNDS,
    refusal: () => new PlatformError('RATE_LIMITED', 'Too many test notifications are being sent.', RETRY_AFTER),
  });

  constructor(private readonly clients: ChannelClients) {}

  /**
   * Sends one to every channel of a rule, also to those that are switched off: one attempt each, which is not logged as a delivery.
   * @returns the results in the order of the channels
   * @throws PlatformError RATE_LIMITED for a tenant of which four calls are under way
   */
  send(rule: StoredRule): Promise<TestResult[]> {
    const each = () => Promise.all(rule.channels.map((channel) => testChannel(this.clients, channel, rule)));
    return this.#calls.run(rule.row.tenant_id, each);
  }
}
