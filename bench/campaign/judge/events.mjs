/** Compares the events of the record with what a follower read, what the receiver got, and what was pushed. */
import { setTimeout as delay } from 'node:timers/promises';
import { DELIVERED } from '../tenant.mjs';

const EVENTS = `
  SELECT event_id, event_type, occurred_at, message_id, coalesce(payload->>'request_id', '') AS request_id
    FROM events WHERE tenant_id = $1`;
const TERMINAL = ['completed', 'failed', 'canceled'];
/** How long events that were written just before are waited for. Sessions end, by their idle time, while this judges. */
const ARRIVAL_MS = 10_000;

/** Which events a follower has not read yet. */
function missing({ follower }, events) {
  const read = new Set(follower.ids);
  return events.filter(({ event_id, occurred_at }) => occurred_at > follower.openedAtMs && !read.has(event_id));
}

/** @param ids what the follower had read before the record was: each of them is on it */
function judgeFollower({ follower, id: tenant }, ids, events, erased) {
  const violations = missing({ follower }, events).map(
    ({ event_id, event_type }) =>
      `${tenant}: the stream never brought ${event_id} (${event_type}); last: ${follower.lastError}`,
  );
  const seen = new Set();
  for (const id of ids) {
    if (seen.has(id)) violations.push(`${tenant}: the stream brought ${id} twice`);
    seen.add(id);
  }
  const known = new Set(events.map(({ event_id }) => event_id));
  for (const id of seen)
    if (!known.has(id) && !erased.eventIds.has(id))
      violations.push(`${tenant}: the stream brought ${id}, which is not on the record`);
  return violations;
}

function judgeDeliveries(tenant, events, receiver, erased) {
  const violations = [];
  const wanted = new Set();
  for (const { event_type, message_id, request_id } of events.filter((event) => DELIVERED.includes(event.event_type))) {
    const key = [tenant.id, event_type, message_id, request_id].join('/');
    if (wanted.has(key)) violations.push(`${key} has happened twice`);
    wanted.add(key);
    const deliveries = receiver.alerts.get(key)?.size ?? 0;
    if (deliveries !== 1) violations.push(`${key} was delivered ${deliveries} times`);
  }
  for (const key of receiver.alerts.keys())
    if (key.startsWith(`${tenant.id}/`) && !wanted.has(key) && !erased.messages.has(key.split('/')[2]))
      violations.push(`${key} was delivered and has not happened`);
  return violations;
}

/** A configuration that was set before the end has been told of it, and of no other end. */
function judgePushes(tenant, receiver, known) {
  const violations = [];
  for (const [id, { pushed, pushedAtMs }] of tenant.accepted) {
    const row = known.get(id);
    if (!pushed || !row?.completed_at) continue;
    const states = receiver.pushes.get(id) ?? [];
    if (row.completed_at.getTime() > pushedAtMs && !states.includes(row.state))
      violations.push(`${id} is ${row.state}, and its push configuration got only ${states}`);
    for (const state of states)
      if (TERMINAL.includes(state) && state !== row.state)
        violations.push(`${id} is ${row.state}, and ${state} was pushed`);
  }
  return violations;
}

/** Whether everything has reached the followers that they are to read. */
export async function allRead(database, tenants) {
  for (const tenant of tenants) {
    const { rows } = await database.query(EVENTS, [tenant.id]);
    if (missing(tenant, rows).length > 0) return false;
  }
  return true;
}

/** The events of a tenant on the record, and what its follower had read before. Waits for those that are still on their way. */
async function readEvents(database, tenant) {
  const ids = [...tenant.follower.ids];
  const { rows } = await database.query(EVENTS, [tenant.id]);
  const untilMs = performance.now() + ARRIVAL_MS;
  while (missing(tenant, rows).length > 0 && performance.now() < untilMs) await delay(100);
  return { ids, rows };
}

/** @param {import('../upkeep.mjs').Upkeep['erased']} erased @returns violations */
export async function judgeEvents(database, tenants, receiver, record, erased) {
  const known = new Map(record.map((row) => [row.message_id, row]));
  const violations = [];
  for (const tenant of tenants) {
    const { ids, rows } = await readEvents(database, tenant);
    violations.push(
      ...judgeFollower(tenant, ids, rows, erased),
      ...judgeDeliveries(tenant, rows, receiver, erased),
      ...judgePushes(tenant, receiver, known),
    );
  }
  return violations;
}
