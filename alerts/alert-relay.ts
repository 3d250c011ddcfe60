import type { Db, Tx } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import type { Secrets } from '../runtime/secrets.js';
import { consumeEvents, type PositionedEvent } from '../telemetry/event-reader.js';
import { type Firing, writeFirings } from './firings.js';
import { passesFilters } from './matching.js';
import { type CompiledRule, RuleCache } from './rule-cache.js';
import { countEvent, hasState, type RuleState } from './thresholds.js';

/** Events of one transaction. */
const BATCH = 500;
/** Deliveries after which a transaction takes no further event: one event may have ten for each of 500 rules. */
const DELIVERIES_MAX = 2_000;
/** Between two looks for events. */
const INTERVAL_MS = 100;

export interface AlertRelayDeps {
  db: Db;
  secrets: Pick<Secrets, 'encrypt' | 'decrypt'>;
  log: Logger;
  slackApiUrl: string;
  /** Of the API, without a slash at the end; empty while this process does not know it. */
  baseUrl: () => string;
  /** Called when deliveries may have been written. */
  delivered: () => void;
}

/** Those that have, or had, rules. */
const TENANTS = 'SELECT tenant_id FROM alert_revisions';
const STATES = `
  SELECT s.tenant_id, s.rule_id, s.counted_ms, s.fired_ms FROM alert_states s
    JOIN jsonb_to_recordset($1) AS r (tenant_id text, rule_id text) USING (tenant_id, rule_id)`;
const SAVE_STATES = `
  INSERT INTO alert_states (tenant_id, rule_id, counted_ms, fired_ms)
    SELECT * FROM jsonb_to_recordset($1) AS s (tenant_id text, rule_id text, counted_ms jsonb, fired_ms bigint)
    ON CONFLICT (tenant_id, rule_id) DO UPDATE SET counted_ms = excluded.counted_ms, fired_ms = excluded.fired_ms`;

/** An event and the rules that it matches. */
interface Matched {
  event: PositionedEvent;
  rules: CompiledRule[];
}

const keyOf = ({ tenant_id, rule_id }: { tenant_id: string; rule_id: string }) => `${tenant_id} ${rule_id}`;

/** The states of the matched rules that have one. */
async function readStates(tx: Tx, matched: Matched[]): Promise<Map<string, RuleState>> {
  const counting = matched.flatMap(({ rules }) => rules.filter(hasState));
  const rules = new Map(counting.map((rule) => [keyOf(rule), rule]));
  if (rules.size === 0) return new Map();
  const wanted = [...rules.values()].map(({ tenant_id, rule_id }) => ({ tenant_id, rule_id }));
  type Row = RuleState & { tenant_id: string; rule_id: string } & Record<string, unknown>;
  const rows = await tx.query<Row>(STATES, [JSON.stringify(wanted)]);
  const stored = new Map(rows.map(({ counted_ms, fired_ms, ...rule }) => [keyOf(rule), { counted_ms, fired_ms }]));
  return new Map([...rules.keys()].map((key) => [key, stored.get(key) ?? { counted_ms: [], fired_ms: null }]));
}

/**
 * Which rules fire, in the order of the events. Changes the states.
 * @param most deliveries after which no further event is taken
 * @returns the firings of the events that were taken, and how many these are
 */
export function fire(
  matched: Matched[],
  states: Map<string, RuleState>,
  most = DELIVERIES_MAX,
): { firings: Firing[]; taken: number } {
  const firings: Firing[] = [];
  let taken = 0;
  let deliveries = 0;
  for (const { event, rules } of matched) {
    if (deliveries >= most) break;
    taken += 1;
    for (const rule of rules) {
      const count = countFor(rule, event, states);
      if (count === null) continue;
      firings.push({ rule, record: event.record, count });
      deliveries += rule.channels.length;
    }
  }
  return { firings, taken };
}

/** Counts an event for a rule. @returns how many events it has counted if it fires */
function countFor(rule: CompiledRule, { record }: PositionedEvent, states: Map<string, RuleState>): number | null {
  const before = states.get(keyOf(rule));
  if (!before) return 1;
  const { state, fires } = countEvent(rule, before, Date.parse(record.timestamp));
  states.set(keyOf(rule), state);
  return fires;
}

async function saveStates(tx: Tx, states: Map<string, RuleState>): Promise<void> {
  if (states.size === 0) return;
  const rows = [...states].map(([key, state]) => {
    const [tenant_id, rule_id] = key.split(' ');
    return { tenant_id, rule_id, ...state };
  });
  await tx.query(SAVE_STATES, [JSON.stringify(rows)]);
}

async function knownBaseUrl(tx: Tx): Promise<string> {
  const [fact] = await tx.query<{ value: string }>("SELECT value FROM platform_facts WHERE name = 'base_url'");
  return fact?.value ?? '';
}

/**
 * Reads one batch of events, matches it with the rules of their tenants, and writes the deliveries, in the transaction that moves the cursor: a
 * crash neither loses an event nor counts it twice.
 * @returns whether more events may be there at once
 */
async function relayEvents(deps: AlertRelayDeps, rules: RuleCache): Promise<boolean> {
  let hasFired = false;
  let hasMore = false;
  await consumeEvents(deps.db, { consumer: 'alerts', limit: BATCH, tenants: TENANTS }, async (tx, events) => {
    const tenants = new Set(events.map(({ record }) => record.tenant_id));
    const byTenant = await rules.rulesOf(tx, [...tenants]);
    const matched = events.map((event): Matched => {
      const candidates = byTenant.get(event.record.tenant_id)?.get(event.record.event_type) ?? [];
      return { event, rules: candidates.filter(({ filters }) => passesFilters(filters, event.record)) };
    });
    const states = await readStates(tx, matched);
    const { firings, taken } = fire(matched, states);
    hasMore = taken < events.length || events.length === BATCH;
    await saveStates(tx, states);
    if (firings.length === 0) return taken;
    await writeFirings(tx, deps.secrets, firings, deps.baseUrl() || (await knownBaseUrl(tx)));
    hasFired = true;
    return taken;
  });
  if (hasFired) deps.delivered();
  return hasMore;
}

/** The loop that turns events into deliveries; any number of processes may run it, one at a time works. */
export function createAlertRelay(deps: AlertRelayDeps): Loop {
  const rules = new RuleCache(deps.secrets, deps.slackApiUrl, deps.log);
  const work = async (): Promise<number> => ((await relayEvents(deps, rules)) ? 0 : INTERVAL_MS);
  return new Loop({ name: 'alert relay', intervalMs: INTERVAL_MS, immediate: true, work, log: deps.log });
}
