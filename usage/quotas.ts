import { LRUCache } from 'lru-cache';
import type { Tx } from '../db/pool.js';
import type { PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { notAddedUp, QuotaMeter } from './quota-meter.js';
import { type KeyKind, type QuotaRow, type QuotaSubject, readQuotas } from './tenant-limits.js';
import type { UsageDeps } from './usage-report.js';

/** Between two looks at the limits and at what has been used, in milliseconds. */
const INTERVAL_MS = 1_000;
/** A tenant that sent nothing here for this long is not looked at any more. */
const ACTIVE_MS = 60_000;
/** Tenants with limits that are looked at; of more, the one that sent nothing for longest is read anew with its next message. */
const METERS_MAX = 10_000;

/** Those with limits of their own, and those for which an operator of the platform has set ceilings. */
const LIMITED = `
  SELECT tenant_id, ARRAY(SELECT substr(name, 5) FROM jsonb_object_keys(coalesce(l.per_key, '{}')) AS name) AS kinds
    FROM tenant_limits l FULL JOIN tenant_ceilings c USING (tenant_id)
   WHERE coalesce(l.messages_per_day, l.tokens_per_day, l.cost_usd_per_month) IS NOT NULL OR l.per_key <> '{}'
      OR coalesce(c.messages_per_day, c.tokens_per_day, c.cost_usd_per_month) IS NOT NULL`;
/** A key that sent nothing here for this long is read again with its next message. */
const KEY_ACTIVE_MS = 2_000;

/** The keys of a message, by their kinds; several where it may count to each of them. */
export type QuotaKeys = Partial<Record<KeyKind, readonly string[]>>;

/** What accepting messages needs to know of quotas. */
export interface MessageQuotas {
  /** Tenants with limits, and of what kinds of keys: a plain table, since every message looks into it. */
  readonly limited: ReadonlyMap<string, readonly KeyKind[]>;
  /**
   * Accepts a message of a tenant with limits, with those of its keys for which the tenant has limits. `work` gets the refusal where a quota is used up, and still answers a repeat of a message
   * that was accepted before.
   */
  admit<T>(tenantId: string, keys: QuotaKeys, work: (refusal: PlatformError | null) => Promise<T>): Promise<T>;
}

/** In a process without quotas. */
export const UNLIMITED: MessageQuotas = { limited: new Map(), admit: (_tenantId, _keys, work) => work(null) };

/**
 * The quotas of all tenants, and of their users, credentials and agent types: one in each process. A message of a tenant with room takes no round trip: what has been used is read once a second,
 * and this process adds what it lets in itself. Where by that count none is left for the day, it reads again before it refuses. Tokens and cost
 * are known only once a message ends, so they are passed by what is in flight. While usage is not added up for ten seconds, nobody knows them:
 * messages of tenants with limits are refused with `SERVICE_UNAVAILABLE`.
 */
export class Quotas implements MessageQuotas {
  readonly limited = new Map<string, readonly KeyKind[]>();
  readonly #deps: UsageDeps;
  readonly #loop: Loop;
  readonly #meters = new LRUCache<string, QuotaMeter>({ max: METERS_MAX });
  /** How often limits were set in this process: what was read meanwhile may be older. */
  #changes = 0;

  constructor({ log, ...deps }: UsageDeps & { log: Logger }) {
    this.#deps = deps;
    this.#loop = new Loop({ name: 'quotas', intervalMs: INTERVAL_MS, work: () => this.refresh(), log });
  }

  /** Reads which tenants have limits, and keeps that up to date. */
  async start(): Promise<void> {
    await this.#readLimited();
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** To be called after limits of a tenant were set in this process: the next message reads them. @param kinds that have limits now; as before by default */
  changed(tenantId: string, kinds: readonly KeyKind[] = this.limited.get(tenantId) ?? []): void {
    this.#changes += 1;
    for (const [name, { subject }] of this.#meters.entries())
      if (subject.tenant_id === tenantId) this.#meters.delete(name);
    this.limited.set(tenantId, kinds);
  }

  async admit<T>(tenantId: string, keys: QuotaKeys, work: (refusal: PlatformError | null) => Promise<T>): Promise<T> {
    const ofKinds = Object.entries(keys) as [KeyKind, readonly string[]][];
    const subjects: QuotaSubject[] = [
      { tenant_id: tenantId, kind: '', key: '' },
      ...ofKinds.flatMap(([kind, ofKind]) => ofKind.map((key) => ({ tenant_id: tenantId, kind, key }))),
    ];
    const meters: QuotaMeter[] = [];
    for (const subject of subjects) {
      const meter = this.#meters.get(nameOf(subject)) ?? (await this.#read(subject));
      if (!meter) continue;
      meter.usedAtMs = performance.now();
      meters.push(meter);
    }
    // All have room at the same moment, in which the message enters.
    for (let full = fullOf(meters); full; full = fullOf(meters)) {
      const { refusal } = full;
      if (refusal) return work(refusal);
      const isComplete = await full.readAgain();
      if (!isComplete && !full.hasRoom) return work(full.refusal ?? notAddedUp());
    }
    return meters.reduce(
      (enter, meter) => () => meter.enter(enter),
      () => work(null),
    )();
  }

  /** Reads which tenants have limits, and what those have used that send to this process. */
  async refresh(): Promise<void> {
    await this.#readLimited();
    const idleSinceMs = performance.now() - ACTIVE_MS;
    for (const [name, { usedAtMs, subject }] of this.#meters.entries())
      if (usedAtMs < idleSinceMs || !this.limited.has(subject.tenant_id)) this.#meters.delete(name);
    const activeSinceMs = performance.now() - KEY_ACTIVE_MS;
    const meters = [...this.#meters.values()].filter(
      ({ subject, usedAtMs }) => subject.kind === '' || usedAtMs >= activeSinceMs,
    );
    if (meters.length > 0) await this.#readAgain(meters);
  }

  async #readLimited(): Promise<void> {
    const changes = this.#changes;
    const rows = await this.#deps.db.system((tx) => tx.query<{ tenant_id: string; kinds: KeyKind[] }>(LIMITED));
    if (changes !== this.#changes) return this.#readLimited();
    const found = new Map(rows.map(({ tenant_id, kinds }) => [tenant_id, kinds]));
    for (const tenantId of this.limited.keys()) if (!found.has(tenantId)) this.limited.delete(tenantId);
    for (const [tenantId, kinds] of found) this.limited.set(tenantId, kinds);
  }

  /** The first reading for a tenant or key. @returns undefined for one without limits */
  async #read(subject: QuotaSubject): Promise<QuotaMeter | undefined> {
    const changes = this.#changes;
    const readAtMs = performance.now();
    const { rows, isComplete } = await this.#rowsOf([subject]);
    const [row] = rows;
    if (changes !== this.#changes) return this.#read(subject);
    const known = this.#meters.get(nameOf(subject));
    if (known || !row || !hasLimits(row)) return known;
    const meter = new QuotaMeter({ row, isComplete }, readAtMs, (own) => this.#readAgain([own]));
    this.#meters.set(nameOf(subject), meter);
    return meter;
  }

  async #readAgain(meters: QuotaMeter[]): Promise<boolean> {
    const setters = new Map(meters.map((meter) => [nameOf(meter.subject), meter.beginReading()]));
    const { rows, isComplete } = await this.#rowsOf(meters.map(({ subject }) => subject));
    for (const row of rows) setters.get(nameOf(row))?.({ row, isComplete });
    return isComplete;
  }

  /** One tenant's message waits for its row in the turn of the tenant. */
  async #rowsOf(subjects: QuotaSubject[]): Promise<{ rows: QuotaRow[]; isComplete: boolean }> {
    const { db, catchUpUsage } = this.#deps;
    const isComplete = await catchUpUsage();
    const [first, ...others] = subjects;
    const read = (tx: Tx) => readQuotas(tx, subjects);
    const isOne = first !== undefined && others.length === 0;
    return { rows: await (isOne ? db.tenant(first.tenant_id, read) : db.system(read)), isComplete };
  }
}

const nameOf = ({ tenant_id, kind, key }: QuotaSubject) => `${tenant_id}\n${kind}\n${key}`;

/** The first meter without room. */
const fullOf = (meters: readonly QuotaMeter[]) => meters.find(({ hasRoom }) => !hasRoom);

function hasLimits({ messages_per_day, tokens_per_day, cost_usd_per_month }: QuotaRow): boolean {
  return messages_per_day !== null || tokens_per_day !== null || cost_usd_per_month !== null;
}
