import type { Statement } from '../db/connections/statement.js';
import type { Db, Tx } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';
import type { Secrets } from '../runtime/secrets.js';
import { consumeEvents, type PositionedEvent } from '../telemetry/event-reader.js';
import { consumeLeftBehind, type LeftBehind, leaveBehind, tenantsBehind } from '../telemetry/tenant-cursors.js';
import { writeFirings } from './firings.js';
import { fire, type Matched, matchLeftBehind, matchShared } from './relay-batch.js';
import { COMPILED_IN_SHARED, RuleCache } from './rule-cache.js';
import { readStates, saveStates } from './rule-states.js';

/** The name of the relay's cursors in `event_cursors`: one for all tenants, and one for each that is left behind. */
const CONSUMER = 'alerts';
/** Events of one transaction. */
const BATCH = 500;
/** How often the relay looks for events that another process has put in order. For this process's own, `wake` is called. */
const INTERVAL_MS = 1_000;
/** How often it looks for tenants that another process has left behind. It knows its own at once. */
const LEFT_BEHIND_INTERVAL_MS = 1_000;

export interface AlertRelayDeps {
  db: Db;
  secrets: Pick<Secrets, 'encrypt' | 'decrypt' | 'activate'>;
  log: Logger;
  slackApiUrl: string;
  /** Of the API, without a slash at the end; empty while this process does not know it. */
  baseUrl: () => string;
  /** Called when deliveries may have been written. */
  deliveriesWritten: () => void;
}

const TENANTS = 'SELECT tenants_with_alerts()';

/** A look before the lock of the cursor, which is a write. */
const LOOK: Statement<boolean> = {
  name: 'alerts_have_events',
  text: 'SELECT to_json(alerts_have_events())',
};

async function knownBaseUrl(tx: Tx): Promise<string> {
  const [fact] = await tx.query<{ value: string }>("SELECT value FROM platform_facts WHERE name = 'base_url'");
  return fact?.value ?? '';
}

/** Turns batches of events into deliveries, each in the transaction that moves the cursor: a crash neither loses an event nor counts it twice. */
class AlertRelay {
  readonly #deps: AlertRelayDeps;
  readonly #rules: RuleCache;
  readonly #onLeftBehind: () => void;

  /** @param onLeftBehind called when a tenant was left behind */
  constructor(deps: AlertRelayDeps, rules: RuleCache, onLeftBehind: () => void) {
    this.#onLeftBehind = onLeftBehind;
    this.#deps = deps;
    this.#rules = rules;
  }

  /** Takes the next events of all tenants that are not left behind. @returns whether more events may be there at once */
  async relayShared(): Promise<boolean> {
    const { db, deliveriesWritten } = this.#deps;
    const [isThere] = await db.systemCall(LOOK, []);
    if (!isThere) return false;
    let left: LeftBehind[] = [];
    let hasFired = false;
    const of = { consumer: CONSUMER, limit: BATCH, tenants: TENANTS };
    const consumed = await consumeEvents(db, of, async (tx, events) => {
      const behindBefore = await tenantsBehind(tx, CONSUMER);
      const inStep = events.filter(({ record }) => !behindBefore.has(record.tenant_id));
      const { matched, behind } = matchShared(inStep, await this.#rulesOf(tx, inStep, COMPILED_IN_SHARED));
      const fired = await this.#fire(tx, matched);
      hasFired = fired.hasFired;
      const next = matched[fired.taken];
      // A tenant whose share ended behind the last event that was taken is not left behind yet: the next batch has its event again.
      const reached = next ? next.event.position - 1 : Number.POSITIVE_INFINITY;
      left = behind.filter(({ position }) => position < reached);
      await leaveBehind(tx, CONSUMER, left);
      return next ? events.findIndex(({ position }) => position === next.event.position) : events.length;
    });
    if (hasFired) deliveriesWritten();
    if (left.length > 0) this.#onLeftBehind();
    // A process that had new events meanwhile found the cursor locked: they are looked for here.
    return consumed !== null && consumed > 0;
  }

  /** Takes the next events of one tenant that is left behind. @returns whether there was one */
  async relayLeftBehind(): Promise<boolean> {
    const { db, deliveriesWritten } = this.#deps;
    let hasFired = false;
    const hadTurn = await consumeLeftBehind(db, { consumer: CONSUMER, limit: BATCH }, async (tx, events) => {
      const fired = await this.#fire(tx, matchLeftBehind(events, (await this.#rulesOf(tx, events)).rules));
      hasFired = fired.hasFired;
      return fired.taken;
    });
    if (hasFired) deliveriesWritten();
    return hadTurn;
  }

  #rulesOf(tx: Tx, events: PositionedEvent[], room?: typeof COMPILED_IN_SHARED) {
    const tenantIds = [...new Set(events.map(({ record }) => record.tenant_id))];
    return this.#rules.rulesOf(tx, tenantIds, room);
  }

  /** Writes what the events cause. @returns how many of them were taken, and whether deliveries were written */
  async #fire(tx: Tx, matched: Matched[]): Promise<{ taken: number; hasFired: boolean }> {
    const before = await readStates(
      tx,
      matched.flatMap(({ rules }) => rules),
    );
    const states = new Map(before);
    const { firings, taken } = fire(matched, states);
    await saveStates(tx, before, states);
    if (firings.length === 0) return { taken, hasFired: false };
    const { secrets, baseUrl } = this.#deps;
    await writeFirings(tx, secrets, firings, baseUrl() || (await knownBaseUrl(tx)));
    return { taken, hasFired: true };
  }
}

/**
 * The loops that turn events into deliveries: one for all tenants, one for those that are left behind, in turns. Any number of processes may
 * run them; one at a time works on a cursor. `wake`: events have been given positions here.
 */
export function createAlertRelay(deps: AlertRelayDeps): Pick<Loop, 'start' | 'stop' | 'wake'> {
  const common = { immediate: true, log: deps.log };
  const rules = new RuleCache(deps.secrets, deps.slackApiUrl, deps.log);
  const relay = new AlertRelay(deps, rules, () => leftBehindLoop.wake());
  const leftBehindLoop = new Loop({
    ...common,
    name: 'alert relay of tenants left behind',
    intervalMs: LEFT_BEHIND_INTERVAL_MS,
    work: async () => ((await relay.relayLeftBehind()) ? 0 : LEFT_BEHIND_INTERVAL_MS),
  });
  const sharedLoop = new Loop({
    ...common,
    name: 'alert relay',
    intervalMs: INTERVAL_MS,
    work: async () => ((await relay.relayShared()) ? 0 : INTERVAL_MS),
  });
  const loops = [sharedLoop, leftBehindLoop];
  return {
    start: () => {
      for (const one of loops) one.start();
    },
    wake: () => sharedLoop.wake(),
    stop: async () => {
      await Promise.all(loops.map((one) => one.stop()));
    },
  };
}
