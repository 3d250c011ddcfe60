import { randomBytes } from 'node:crypto';
import type { QueryResultRow } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createAlertRelay } from '../../alerts/alert-relay.js';
import { COMPILED_IN_SHARED, RuleCache } from '../../alerts/rule-cache.js';
import { createAlertRules } from '../../alerts/rules.js';
import { NewAlertRequest } from '../../contracts/api/alerts.js';
import { recordEvents } from '../../db/events.js';
import type { Db, Tx } from '../../db/pool.js';
import { createOutbound } from '../../http/outbound.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { positionEvents } from '../../telemetry/event-sequencer.js';
import { testAuthor } from '../setup/author.js';
import { cleanUp } from '../setup/clean-up.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { until } from '../setup/until.js';
import { webhook } from './alert-fixture.js';

const log = createLogger({ level: 'silent' });
const database = await freshDatabase();
const db = database.db();
const secrets = createSecrets(randomBytes(32).toString('base64'));
const outbound = createOutbound({ allowCidrs: [] });
cleanUp(() => outbound.close());
const rules = createAlertRules({ db, secrets, outbound, slackApiUrl: 'http://127.0.0.1:9' });

/** A rule on `agent.registered`; its deliveries are never started. */
async function ruleOf(tenantId: string, fields: object = {}): Promise<string> {
  const notifications = [webhook('https://a.example/')];
  const body = { name: 'rule', condition: { event: 'agent.registered' }, notifications, ...fields };
  const by = testAuthor(tenantId);
  return (await rules.create(by, NewAlertRequest.parse(body))).rule_id;
}

/** Lets events of a tenant happen, after all that have happened before. */
async function happen(tenantId: string, count: number): Promise<void> {
  const agent = { agent_type: 'worker', instance_id: 'worker-1', tenant_id: tenantId };
  const payload = { ...agent, connect_mode: 'connected' } as const;
  const events = Array.from({ length: count }, () => ({ tenant_id: tenantId, payload }));
  await db.tenant(tenantId, (tx) => recordEvents(tx, 'agent.registered', events));
  while ((await positionEvents(db, 100_000)) !== 0) {} // one batch may leave some to the next
}

function startRelay(over: Db = db): void {
  const relay = createAlertRelay({
    ...{ db: over, secrets, log, slackApiUrl: 'https://slack.example' },
    baseUrl: () => 'https://platform.example',
    deliveriesWritten: () => undefined,
  });
  relay.start();
  onTestFinished(() => relay.stop());
}

interface Delivered extends QueryResultRow {
  rule_id: string;
  at: string;
}
const deliveriesOf = (tenantId: string) =>
  database.query<Delivered>('SELECT rule_id, created_at::text AS at FROM deliveries WHERE tenant_id = $1', [tenantId]);
const cursors = () => database.query<{ consumer: string }>('SELECT consumer FROM event_cursors ORDER BY 1');

test('a flood of one tenant delays the alerts of another by one share, and none of it is lost or counted twice', async () => {
  const [flooding, other] = [await insertTenant(database), await insertTenant(database)];
  const each = await ruleOf(flooding);
  const counting = await ruleOf(flooding, { threshold: 100, window_seconds: 86_400 });
  await ruleOf(other);
  await happen(flooding, 3_000);
  await happen(other, 1);
  startRelay();
  startRelay(); // another node
  const byRule = async () => {
    const found = await deliveriesOf(flooding);
    return [each, counting].map((rule) => found.filter(({ rule_id }) => rule_id === rule).length);
  };
  await until(async () => (await byRule())[0] === 3_000, { what: 'the deliveries of the flood' });
  const [late] = await deliveriesOf(other);
  const transactions = (await deliveriesOf(flooding)).map(({ at }) => at);
  expect(transactions.filter((at) => at <= (late?.at ?? '')).length).toBeLessThan(3_000);
  expect(transactions.filter((at) => at === late?.at).length).toBeLessThanOrEqual(200);
  expect(await byRule()).toEqual([3_000, 30]);

  // It has caught up, and takes its turns with the others again.
  await until(async () => (await cursors()).length === 1, { what: 'the end of its own cursor' });
  await happen(flooding, 70);
  await happen(other, 1);
  await until(async () => (await deliveriesOf(other)).length === 2, { what: 'the next delivery' });
  await until(async () => (await byRule())[0] === 3_070, { what: 'the next deliveries' });
  expect(await byRule()).toEqual([3_070, 30]);
  await happen(flooding, 30);
  await until(async () => (await byRule())[1] === 31, { what: 'the last alert' });
  expect(await byRule()).toEqual([3_100, 31]);
});

test('a new rule sees no event from before, however late the relay is', async () => {
  const tenantId = await insertTenant(database);
  await ruleOf(tenantId);
  await happen(tenantId, 2);
  const late = await ruleOf(tenantId);
  await happen(tenantId, 1);
  startRelay();
  await until(async () => (await deliveriesOf(tenantId)).length >= 4, { what: 'the deliveries' });
  const ofLate = (await deliveriesOf(tenantId)).filter(({ rule_id }) => rule_id === late);
  expect([(await deliveriesOf(tenantId)).length, ofLate.length]).toEqual([4, 1]);
});

test('an alert says the same time as its event, and has as many attempts as its channel', async () => {
  const tenantId = await insertTenant(database);
  await ruleOf(tenantId, { threshold: 2, notifications: [webhook('https://a.example/', { max_attempts: 4 })] });
  await happen(tenantId, 2);
  startRelay();
  await until(async () => (await deliveriesOf(tenantId)).length === 1, { what: 'the alert' });
  const [row] = await database.query<{ body: Buffer; occurred_at: Date; max_attempts: number }>(
    `SELECT d.body, d.max_attempts, e.occurred_at FROM deliveries d JOIN events e USING (tenant_id, event_id) WHERE d.tenant_id = $1`,
    [tenantId],
  );
  expect(row?.max_attempts).toBe(4);
  const envelope = JSON.parse(secrets.decrypt(row?.body ?? Buffer.of(), 'deliveries').toString());
  expect(envelope).toMatchObject({ event_type: 'system.alert_triggered', timestamp: row?.occurred_at.toISOString() });
});

test('many rules that have changed are compiled in a batch of their tenant', async () => {
  const [changing, other] = [await insertTenant(database), await insertTenant(database)];
  const notifications = Array.from({ length: 10 }, (_, nth) => webhook(`https://a.example/${nth}`));
  for (let rule = 0; rule < 19; rule += 1) await ruleOf(changing, { notifications });
  await ruleOf(other);
  const cache = new RuleCache(secrets, '', log);
  const room = (tx: Tx) => cache.rulesOf(tx, [changing, other], COMPILED_IN_SHARED);
  const { rules, uncompiled } = await db.system(room);
  expect([[...rules.keys()], [...uncompiled]]).toEqual([[other], [changing]]);
  await db.system((tx) => cache.rulesOf(tx, [changing]));
  expect((await db.system(room)).uncompiled.size).toBe(0);
});

test('a tenant that is left behind goes on after events that were erased', async () => {
  const tenantId = await insertTenant(database);
  await ruleOf(tenantId);
  await happen(tenantId, 1_700);
  await database.query(
    `DELETE FROM event_groups WHERE group_id IN (SELECT group_id FROM events WHERE tenant_id = $1 AND event_type = 'agent.registered'
       ORDER BY event_id OFFSET 400 LIMIT 1100)`,
    [tenantId],
  );
  startRelay();
  await until(async () => (await deliveriesOf(tenantId)).length > 500, { what: 'the deliveries after them' });
  await until(async () => (await cursors()).length === 1, { what: 'the end of its own cursor' });
  expect(await deliveriesOf(tenantId)).toHaveLength(600);
});

test('what a rule has counted is written when it changes, and all its alerts of a batch in one round trip', async () => {
  const tenantId = await insertTenant(database);
  const cooling = await ruleOf(tenantId, { cooldown_seconds: 3_600 });
  const everySecond = await ruleOf(tenantId, { threshold: 2, window_seconds: 86_400 });
  const written: string[] = [];
  const counting = (tx: Tx): Tx => ({
    ...tx,
    query: (text, ...given) => {
      if (/SELECT record_event\b/.test(text)) written.push(text);
      return tx.query(text, ...given);
    },
  });
  startRelay({ ...db, system: (work) => db.system((tx) => work(counting(tx))) });
  const stateOf = async (ruleId: string) => {
    const one = 'SELECT xmin::text AS version, counted_ms, fired_ms FROM alert_states WHERE rule_id = $1';
    return (await database.query(one, [ruleId]))[0];
  };
  const firingsOf = async (ruleId: string) =>
    (await deliveriesOf(tenantId)).filter(({ rule_id }) => rule_id === ruleId).length;
  await happen(tenantId, 20);
  await until(async () => (await firingsOf(everySecond)) === 10, { what: 'ten alerts' });
  expect(written).toHaveLength(1);
  const fired = await stateOf(cooling);
  expect(fired).toMatchObject({ counted_ms: [] });
  await happen(tenantId, 2);
  await until(async () => (await firingsOf(everySecond)) === 11, { what: 'the next alert' });
  expect(await firingsOf(cooling)).toBe(1);
  expect(await stateOf(cooling)).toEqual(fired);
});
