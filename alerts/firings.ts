import type { EventRecord } from '../contracts/api/telemetry.js';
import { asksHuman } from '../contracts/events.js';
import { recordEvents } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import { holdSecretKey } from '../db/secret-key.js';
import { type NewAlertDelivery, writeDeliveries } from '../deliveries/delivery-store.js';
import { type Envelope, sealBody, withToken } from '../deliveries/envelope.js';
import { issueCallbackTokens, type RequestSubject } from '../messages/input/callback-tokens.js';
import { readableRequest } from '../messages/read/readable.js';
import type { AskedRequest } from '../messages/read/rows.js';
import { inputRequestOf } from '../messages/read/task.js';
import { groupOf, newId, traceparentOf, uuidOf } from '../runtime/ids.js';
import type { Secrets } from '../runtime/secrets.js';
import type { CompiledChannel, CompiledRule } from './rule-cache.js';

/** Deliveries that are sealed and written at once. */
const WRITTEN_AT_ONCE = 500;

/** A rule that fired. */
export interface Firing {
  rule: CompiledRule;
  /** The event that made it fire. */
  record: EventRecord;
  /** Events that it has counted. */
  count: number;
}

/** The part of an event that a delivery reports. */
type ReportedEvent = Pick<
  EventRecord,
  'event_id' | 'event_type' | 'timestamp' | 'tenant_id' | 'session_id' | 'trace_id' | 'event'
>;

/** A request to a human that an event asks about. */
type EventRequest = AskedRequest & RequestSubject;

/** A delivery before its token is issued. */
interface Draft {
  rule: CompiledRule;
  channel: CompiledChannel;
  reported: ReportedEvent;
  /** Of an event that asks a human. */
  request?: EventRequest | undefined;
}

const TIMESTAMPS = `
  SELECT n.event_id, g.occurred_at FROM unnest($1::text[], $2::text[]) AS n (tenant_id, event_id)
    JOIN event_groups g ON g.tenant_id = uuid_of(n.tenant_id) AND g.group_id = group_of(n.event_id)`;

/** When events happened, as everybody reads it. */
async function timestampsOf(tx: Tx, events: [tenantId: string, eventId: string][]): Promise<Map<string, string>> {
  if (events.length === 0) return new Map();
  const values = [events.map(([tenantId]) => tenantId), events.map(([, eventId]) => eventId)];
  const rows = await tx.query<{ event_id: string; occurred_at: Date }>(TIMESTAMPS, values);
  return new Map(rows.map(({ event_id, occurred_at }) => [event_id, occurred_at.toISOString()]));
}

/**
 * What the firings report: the event of each, or with a threshold above 1 that it was reached, which is an event of its own. All of these are
 * written in one round trip.
 */
async function reportedEventsOf(tx: Tx, firings: Firing[]): Promise<Map<Firing, ReportedEvent>> {
  const reached = firings.filter(({ rule }) => rule.threshold > 1);
  const events = reached.map(({ rule: { tenant_id, rule_id, name: rule_name, severity, ...rule }, count }) => {
    const { threshold, window_seconds } = rule;
    return { tenant_id, severity, payload: { rule_id, rule_name, threshold, window_seconds, count } };
  });
  const eventIds = await recordEvents(tx, 'system.alert_triggered', events);
  const timestamps = await timestampsOf(
    tx,
    reached.map(({ rule }, index) => [rule.tenant_id, eventIds[index] as string]),
  );
  const reported = new Map<Firing, ReportedEvent>(firings.map((firing) => [firing, firing.record]));
  for (const [index, firing] of reached.entries()) {
    const { tenant_id, payload: event } = events[index] as (typeof events)[number];
    const event_id = eventIds[index] as string;
    reported.set(firing, {
      ...{ tenant_id, session_id: '', timestamp: timestamps.get(event_id) ?? firing.record.timestamp },
      event_id,
      event_type: 'system.alert_triggered',
      event,
    });
  }
  return reported;
}

const REQUESTS = `
  WITH asked AS (SELECT DISTINCT a.* FROM jsonb_to_recordset($1) AS a (tenant_id text, message_id text, plan_id text))
  SELECT r.* FROM asked JOIN request_details r USING (tenant_id, message_id)
  UNION ALL SELECT r.* FROM asked JOIN request_details r USING (tenant_id, plan_id)`;

/**
 * The request that an event asks about: the one that it names, else the newest of its message at the time of the event. A later one is another
 * question, which must not be answered by whoever reads this one.
 */
function requestOf(reported: ReportedEvent, requests: EventRequest[]): EventRequest | undefined {
  const { message_id, plan_id, request_id } = reported.event;
  const about = requests.filter(
    (one) => one.tenant_id === reported.tenant_id && (one.message_id ?? one.plan_id) === (message_id ?? plan_id),
  );
  const named = about.find((one) => one.request_id === request_id);
  if (named) return named;
  const asked = about.filter(({ requested_at }) => requested_at.getTime() <= Date.parse(reported.timestamp));
  return asked.sort((a, b) => b.requested_at.getTime() - a.requested_at.getTime())[0];
}

/** What a token for a request answers. */
function purposeOf({ request_id, digest, expires_at, tenant_id, message_id, plan_id }: EventRequest) {
  return { request_id, digest, expires_at, ...({ tenant_id, message_id, plan_id } as RequestSubject) };
}

/** Finds the requests that deliveries ask about. */
async function withRequests(tx: Tx, drafts: Draft[]): Promise<Draft[]> {
  const approvals = drafts.filter(({ reported }) => asksHuman(reported.event_type));
  if (approvals.length === 0) return drafts;
  const messages = approvals.map(({ reported }) => ({
    tenant_id: reported.tenant_id,
    message_id: reported.event.message_id,
    plan_id: reported.event.plan_id,
  }));
  const requests = await tx.query<EventRequest>(REQUESTS, [JSON.stringify(messages)]);
  return drafts.map((draft) =>
    asksHuman(draft.reported.event_type) ? { ...draft, request: requestOf(draft.reported, requests) } : draft,
  );
}

/** The trace context of a delivery: the span of the message or dispatch that its event is about. Undefined where it is about neither. */
function contextOf({ trace_id, event: { message_id, dispatch_id } }: ReportedEvent): string | undefined {
  const id = message_id ?? dispatch_id;
  return trace_id !== undefined && typeof id === 'string' ? traceparentOf(trace_id, uuidOf(id)) : undefined;
}

/** What is asked, for whoever gets the token that answers it: nobody else is sent arguments and forms. */
function askedIn(request: EventRequest): Pick<Envelope, 'prompt' | 'expires_at' | 'input_request'> {
  const input_request = inputRequestOf(readableRequest(request));
  return { prompt: input_request.prompt, expires_at: input_request.expires_at, input_request };
}

/** The body of a delivery. */
export function envelopeOf(
  { rule, reported }: { rule: Pick<CompiledRule, 'name' | 'severity'>; reported: ReportedEvent },
  deliveryId: string,
  { baseUrl, token, request }: { baseUrl: string; token?: string | undefined } & Pick<Draft, 'request'>,
): Envelope {
  const { event_type, timestamp, tenant_id, session_id, event } = reported;
  const isApproval = asksHuman(event_type);
  const envelope: Envelope = {
    delivery_id: deliveryId,
    event_type,
    timestamp,
    tenant_id,
    session_id,
    rule_name: rule.name,
    severity: rule.severity,
    type: isApproval ? 'approval_required' : 'alert',
    event,
    ...(request && { request_id: request.request_id, digest: request.digest }),
    ...(request && token !== undefined && askedIn(request)),
    ...(isApproval && { resolve_url: `${baseUrl}/messages/${event.message_id ?? event.plan_id}/resolve` }),
  };
  return token === undefined ? envelope : withToken(envelope, token);
}

/**
 * Without the emails that would tell a recipient of a request again: a rule with a `*` matches all the events that ask about it, which are
 * written together, and channels may share a recipient.
 */
function oncePerRequest(drafts: Draft[]): Draft[] {
  const mailed = new Set<string>();
  return drafts.filter(({ rule, channel: { mail_to }, reported: { event_id, event_type } }) => {
    if (!mail_to || !asksHuman(event_type)) return true;
    const mail = JSON.stringify([rule.tenant_id, rule.rule_id, groupOf(event_id), mail_to.toLowerCase()]);
    return !mailed.has(mail) && mailed.add(mail);
  });
}

/** Issues the tokens of deliveries, each for where its delivery goes. */
async function issueTokens(tx: Tx, drafts: Draft[]): Promise<Map<Draft, string | undefined>> {
  const purposes = drafts.flatMap((draft) => {
    const { rule_id, writers, has_token } = draft.rule;
    const { destination } = draft.channel;
    return has_token && draft.request ? [{ draft, ...purposeOf(draft.request), rule_id, writers, destination }] : [];
  });
  const tokens = await issueCallbackTokens(
    tx,
    purposes.map(({ draft: _, ...purpose }) => purpose),
  );
  return new Map(purposes.map(({ draft }, index) => [draft, tokens[index]]));
}

/**
 * Writes the deliveries of rules that fired, one for each channel and of email for each recipient, with their tokens and events.
 * @param baseUrl of the API, without a slash at the end
 */
export async function writeFirings(
  tx: Tx,
  secrets: Pick<Secrets, 'encrypt' | 'activate'>,
  firings: Firing[],
  baseUrl: string,
): Promise<void> {
  const drafts: Draft[] = [];
  for (const [{ rule }, reported] of await reportedEventsOf(tx, firings)) {
    for (const channel of rule.channels) drafts.push({ rule, channel, reported });
  }
  const ready = await withRequests(tx, oncePerRequest(drafts));
  await holdSecretKey(tx, secrets);
  // In portions: an event may have thousands of deliveries, each with a body of its own.
  for (let from = 0; from < ready.length; from += WRITTEN_AT_ONCE) {
    const some = ready.slice(from, from + WRITTEN_AT_ONCE);
    const tokens = await issueTokens(tx, some);
    const deliveries = some.map((draft): NewAlertDelivery => {
      const { rule, channel, reported, request } = draft;
      const { tenant_id, session_id, event_id, event_type } = reported;
      const delivery_id = newId('dlv');
      const envelope = envelopeOf(draft, delivery_id, { baseUrl, token: tokens.get(draft), request });
      const body = sealBody(secrets, JSON.stringify(envelope));
      const about = { tenant_id, session_id, delivery_id, event_id, event_type, rule_id: rule.rule_id };
      return { ...channel, ...about, body, traceparent: contextOf(reported) };
    });
    await writeDeliveries(tx, deliveries);
  }
}
