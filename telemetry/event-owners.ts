import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Caller } from '../contracts/api/auth.js';
import { isLimited, isSessionWithin, isWithin, LIMITED_EVENTS, type Limitable } from '../contracts/permissions.js';
import { typeOfSession } from '../db/ownership.js';
import type { Db } from '../db/pool.js';
import type { PositionedEvent } from './event-reader.js';

/** Messages whose owners are kept. */
const OWNERS_MAX = 10_000;

/** Each is looked up by its key, in the months of these ids. */
const OWNERS = `
  SELECT 'message ' || m.message_id AS key, m.user_id, m.session_id, coalesce(m.agent_type, m.want_agent_type) AS agent_type
    FROM messages m WHERE m.tenant_id = $1 AND m.message_id = ANY ($2)
  UNION ALL
  SELECT 'session ' || s.session_id, s.user_id, s.session_id, ${typeOfSession('s')} FROM sessions s WHERE s.tenant_id = $1 AND s.session_id = ANY ($3)`;

/** What an event is about, as the key of its owner; null for an event of the tenant itself. */
function subjectOf({ message_id, record }: PositionedEvent): string | null {
  const { message_id: named } = record.event;
  const message = message_id ?? (typeof named === 'string' ? named : null);
  if (message) return `message ${message}`;
  return record.session_id === '' ? null : `session ${record.session_id}`;
}

/** Reads that go out together. */
interface Batch {
  wanted: Set<string>;
  owners: Promise<Map<string, Limitable>>;
}

/**
 * Whose messages and sessions events are about, for the streams of limited tokens. A page comes to all streams of a tenant in the same turn: what
 * they ask for is one query, which begins after it. Owners of messages are kept. Those of sessions are not: a session gets its type later.
 */
export class EventOwners {
  readonly #db: Db;
  readonly #known = new LRUCache<string, Limitable>({ max: OWNERS_MAX });
  readonly #next = new Map<string, Batch>();

  constructor(db: Db) {
    this.#db = db;
  }

  /** Those of a tenant's events that the caller may see: of messages and sessions within the limits of its token. */
  async visible<Item extends { event: PositionedEvent }>(caller: Caller, items: Item[]): Promise<Item[]> {
    if (!isLimited(caller)) return items;
    const { tenant_id } = caller;
    const shown = items.filter(({ event }) => LIMITED_EVENTS.has(event.record.category));
    const subjects = shown.map(({ event }) => subjectOf(event));
    const owners = await this.#read(tenant_id, new Set(subjects.filter((subject) => subject !== null)));
    return shown.filter((_item, place) => {
      const subject = subjects[place] ?? '';
      const owner = owners.get(subject);
      const isOwn = subject.startsWith('session') ? isSessionWithin : isWithin;
      return owner !== undefined && isOwn(caller, owner);
    });
  }

  async #read(tenantId: string, subjects: ReadonlySet<string>): Promise<Map<string, Limitable>> {
    const owners = new Map<string, Limitable>();
    const unknown: string[] = [];
    for (const subject of subjects) {
      const known = this.#known.get(`${tenantId} ${subject}`);
      if (known) owners.set(subject, known);
      else unknown.push(subject);
    }
    if (unknown.length === 0) return owners;
    const batch = this.#next.get(tenantId) ?? this.#begin(tenantId);
    for (const subject of unknown) batch.wanted.add(subject);
    return new Map([...owners, ...(await batch.owners)]);
  }

  #begin(tenantId: string): Batch {
    const wanted = new Set<string>();
    const owners = setImmediate().then(() => {
      this.#next.delete(tenantId);
      return this.#load(tenantId, [...wanted]);
    });
    const batch = { wanted, owners };
    this.#next.set(tenantId, batch);
    return batch;
  }

  async #load(tenantId: string, subjects: string[]): Promise<Map<string, Limitable>> {
    const idsOf = (kind: string) => subjects.filter((key) => key.startsWith(kind)).map((key) => key.slice(kind.length));
    const values = [tenantId, idsOf('message '), idsOf('session ')];
    const rows = await this.#db.tenant(tenantId, (tx) => tx.query<Limitable & { key: string }>(OWNERS, values));
    const owners = new Map(rows.map(({ key, ...owner }) => [key, owner]));
    for (const [key, owner] of owners)
      if (key.startsWith('message ') && owner.agent_type !== null) this.#known.set(`${tenantId} ${key}`, owner);
    return owners;
  }
}
