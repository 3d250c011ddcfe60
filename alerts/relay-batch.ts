import type { PositionedEvent } from '../telemetry/event-reader.js';
import type { LeftBehind } from '../telemetry/tenant-cursors.js';
import type { Firing } from './firings.js';
import { passesFilters } from './matching.js';
import type { CompiledRule, RulesOf } from './rule-cache.js';
import { stateKeyOf } from './rule-states.js';
import { countEvent, keptEvents, type RuleState } from './thresholds.js';

/** Deliveries after which a transaction takes no further event: one event may have some sixty for each of 500 rules. */
const DELIVERIES_MAX = 2_000;

/** What a tenant may have of one batch; `work` by `workOf`. */
interface Share {
  work: number;
  deliveries: number;
}

/** Of a batch that all tenants share. A tenant with more is left behind, so what it does delays the others by this much in a batch. */
const SHARED: Share = { work: 2_000, deliveries: 200 };
/** Of a batch of its own, which takes one event at least. It bounds the memory of a transaction. */
const LEFT_BEHIND: Share = { work: 20_000, deliveries: DELIVERIES_MAX };

const UNBOUNDED: Share = { work: Number.POSITIVE_INFINITY, deliveries: Number.POSITIVE_INFINITY };

/** Rules that are looked at for the work of one that matches. */
const LOOKS = 50;
/** Events that a rule keeps in its state, for the same work. */
const KEPT = 100;

/** An event and the rules that it matches. */
export interface Matched {
  event: PositionedEvent;
  rules: CompiledRule[];
}

/** What an event costs: looking at the rules of its type, and for those that match reading and writing what they have counted. */
function workOf(candidates: number, rules: CompiledRule[]): number {
  return candidates / LOOKS + rules.reduce((sum, rule) => sum + 1 + keptEvents(rule) / KEPT, 0);
}

/** Whether an event is one that the rule names, and has happened since the rule is there. */
function matches({ filters, created_at }: CompiledRule, { record }: PositionedEvent): boolean {
  return Date.parse(record.timestamp) >= created_at.getTime() && passesFilters(filters, record);
}

/** Matches events of tenants with their rules until the tenant's share is used up. */
class Matcher {
  readonly #rulesOf: RulesOf;
  readonly #share: Share;
  readonly #used = new Map<string, Share>();

  constructor(rulesOf: RulesOf, share: Share) {
    this.#rulesOf = rulesOf;
    this.#share = share;
  }

  /** @returns undefined when the event would exceed the share of its tenant */
  match(event: PositionedEvent): Matched | undefined {
    const { tenant_id, event_type } = event.record;
    const candidates = this.#rulesOf.get(tenant_id)?.get(event_type) ?? [];
    const used = this.#used.get(tenant_id) ?? { work: 0, deliveries: 0 };
    if (used.work + candidates.length / LOOKS > this.#share.work) return undefined;
    const rules = candidates.filter((rule) => matches(rule, event));
    const work = used.work + workOf(candidates.length, rules);
    const deliveries = rules.reduce((sum, { channels }) => sum + channels.length, used.deliveries);
    if (work > this.#share.work || deliveries > this.#share.deliveries) return undefined;
    this.#used.set(tenant_id, { work, deliveries });
    return { event, rules };
  }
}

/**
 * Matches a batch of all tenants. A tenant that has used up its share is left behind from the event on that would exceed it.
 * @param uncompiled tenants whose rules are not compiled: they are left behind at once
 */
export function matchShared(
  events: PositionedEvent[],
  { rules: rulesOf, uncompiled }: { rules: RulesOf; uncompiled: ReadonlySet<string> },
  share = SHARED,
): { matched: Matched[]; behind: LeftBehind[] } {
  const matcher = new Matcher(rulesOf, share);
  const behind = new Map<string, LeftBehind>();
  const matched = events.flatMap((event) => {
    const { tenant_id } = event.record;
    if (behind.has(tenant_id)) return [];
    const found = uncompiled.has(tenant_id) ? undefined : matcher.match(event);
    if (!found) behind.set(tenant_id, { tenant_id, position: event.position - 1 });
    return found ?? [];
  });
  return { matched, behind: [...behind.values()] };
}

/** Matches a batch of one tenant: its first event, and as many of those that follow as have room. */
export function matchLeftBehind(
  [first, ...others]: PositionedEvent[],
  rulesOf: RulesOf,
  share = LEFT_BEHIND,
): Matched[] {
  if (!first) return [];
  const matcher = new Matcher(rulesOf, share);
  const alone = matcher.match(first);
  if (!alone) return [new Matcher(rulesOf, UNBOUNDED).match(first)].filter((found) => found !== undefined);
  const matched = [alone];
  for (const event of others) {
    const found = matcher.match(event);
    if (!found) break;
    matched.push(found);
  }
  return matched;
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
  const before = states.get(stateKeyOf(rule));
  if (!before) return 1;
  const { state, fires } = countEvent(rule, before, Date.parse(record.timestamp));
  states.set(stateKeyOf(rule), state);
  return fires;
}
