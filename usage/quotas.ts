import { LRUCache } from 'lru-cache';
import type { Tx } from '../db/pool.js';
import type { PlatformError } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import { notAddedUp, QuotaMeter } from './quota-meter.js';
import { type QuotaRow, readQuotas } from './tenant-limits.js';
import type { UsageDeps } from './usage-report.js';

/** Between two looks at the limits and at what has been used, in milliseconds. */
const INTERVAL_MS = 1_000;
/** A tenant that sent nothing here for this long is not looked at any more. */
const ACTIVE_MS = 60_000;
/** Tenants with limits that are looked at; of more, the one that sent nothing for longest is read anew with its next message. */
const METERS_MAX = 10_000;

const LIMITED = `
  SELECT tenant_id FROM tenant_limits WHERE coalesce(messages_per_day, tokens_per_day, cost_usd_per_month) IS NOT NULL`;

/** What accepting messages needs to know of quotas. */
export interface MessageQuotas {
  /** Tenants with limits: a plain table, since every message looks into it. */
  readonly limited: ReadonlySet<string>;
  /**
   * Accepts a message of a tenant with limits. `work` gets the refusal where a quota is used up, and still answers a repeat of a message
   * that was accepted before.
   */
  admit<T>(tenantId: string, work: (refusal: PlatformError | null) => Promise<T>): Promise<T>;
}

/** In a process without quotas. */
export const UNLIMITED: MessageQuotas = { limited: new Set(), admit: (_tenantId, work) => work(null) };

/**
 * The quotas of all tenants: one in each process. A message of a tenant with room takes no round trip: what has been used is read once a second,
 * and this process adds what it lets in itself. Where by that count none is left for the day, it reads again before it refuses. Tokens and cost
 * are known only once a message ends, so they are passed by what is in flight. While usage is not added up for ten seconds, nobody knows them:
 * messages of tenants with limits are refused with `SERVICE_UNAVAILABLE`.
 */
export class Quotas implements MessageQuotas {
  readonly limited = new Set<string>();
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

  /** To be called after limits of a tenant were set in this process: its next message reads them. */
  changed(tenantId: string): void {
    this.#changes += 1;
    this.#meters.delete(tenantId);
    this.limited.add(tenantId);
  }

  async admit<T>(tenantId: string, work: (refusal: PlatformError | null) => Promise<T>): Promise<T> {
    const meter = this.#meters.get(tenantId) ?? (await this.#read(tenantId));
    if (!meter) return work(null);
    meter.usedAtMs = performance.now();
    while (!meter.hasRoom) {
      const { refusal } = meter;
      if (refusal) return work(refusal);
      const isComplete = await meter.readAgain();
      if (!isComplete && !meter.hasRoom) return work(meter.refusal ?? notAddedUp());
    }
    return meter.enter(() => work(null));
  }

  /** Reads which tenants have limits, and what those have used that send to this process. */
  async refresh(): Promise<void> {
    await this.#readLimited();
    const idleSinceMs = performance.now() - ACTIVE_MS;
    for (const [tenantId, { usedAtMs }] of this.#meters.entries())
      if (usedAtMs < idleSinceMs || !this.limited.has(tenantId)) this.#meters.delete(tenantId);
    const meters = [...this.#meters.entries()];
    if (meters.length > 0) await this.#readAgain(meters);
  }

  async #readLimited(): Promise<void> {
    const changes = this.#changes;
    const rows = await this.#deps.db.system((tx) => tx.query<{ tenant_id: string }>(LIMITED));
    if (changes !== this.#changes) return this.#readLimited();
    const found = new Set(rows.map(({ tenant_id }) => tenant_id));
    for (const tenantId of this.limited) if (!found.has(tenantId)) this.limited.delete(tenantId);
    for (const tenantId of found) this.limited.add(tenantId);
  }

  /** The first reading for a tenant. @returns undefined for one without limits */
  async #read(tenantId: string): Promise<QuotaMeter | undefined> {
    const changes = this.#changes;
    const readAtMs = performance.now();
    const { rows, isComplete } = await this.#rowsOf([tenantId]);
    const [row] = rows;
    if (changes !== this.#changes) return this.#read(tenantId);
    const known = this.#meters.get(tenantId);
    if (known || !row || !hasLimits(row)) return known;
    const meter = new QuotaMeter({ row, isComplete }, readAtMs, (own) => this.#readAgain([[tenantId, own]]));
    this.#meters.set(tenantId, meter);
    return meter;
  }

  async #readAgain(meters: [string, QuotaMeter][]): Promise<boolean> {
    const setters = new Map(meters.map(([tenantId, meter]) => [tenantId, meter.beginReading()]));
    const { rows, isComplete } = await this.#rowsOf([...setters.keys()]);
    for (const row of rows) setters.get(row.tenant_id)?.({ row, isComplete });
    return isComplete;
  }

  /** One tenant's message waits for its row in the turn of the tenant. */
  async #rowsOf(tenantIds: string[]): Promise<{ rows: QuotaRow[]; isComplete: boolean }> {
    const { db, catchUpUsage } = this.#deps;
    const isComplete = await catchUpUsage();
    const [first, ...others] = tenantIds;
    const read = (tx: Tx) => readQuotas(tx, tenantIds);
    const isOne = first !== undefined && others.length === 0;
    return { rows: await (isOne ? db.tenant(first, read) : db.system(read)), isComplete };
  }
}

function hasLimits({ messages_per_day, tokens_per_day, cost_usd_per_month }: QuotaRow): boolean {
  return messages_per_day !== null || tokens_per_day !== null || cost_usd_per_month !== null;
}
