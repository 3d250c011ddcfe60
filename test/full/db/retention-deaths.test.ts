import { expect, test } from 'vitest';
import type { Db } from '../../../db/pool.js';
import { getMessage } from '../../../messages/read/read.js';
import {
  BOTH,
  database,
  KEPT_DAYS,
  MARK,
  MONTHS_AGO,
  message,
  month,
  monthsOf,
  readEvents,
  rest,
  retention,
  TABLES,
  tenantId,
  usePastMonths,
} from '../../db/retention-fixture.js';
import { callerOf } from '../../setup/core.js';
import { TcpProxy } from '../../setup/platform/tcp-proxy.js';
import { until } from '../../setup/until.js';
import { connect } from '../../telemetry/event-writer.js';

usePastMonths();

/** So many rows are left in each table of what belongs to messages, but for decisions. */
async function expectRest(each: number, decisions: number): Promise<void> {
  const { input_decisions, ...others } = await rest();
  expect(new Set(Object.values(others))).toEqual(new Set([each]));
  expect(input_decisions).toBe(decisions);
}

test('a process that dies between the steps leaves nothing behind, and an archive of an operator stays', async () => {
  await message(4);
  const [dead, archive] = [`messages_${month(4).suffix}`, `messages_${month(3).suffix}`];
  await database.query(`COMMENT ON TABLE ${dead} IS ${MARK}`);
  for (const name of [dead, archive]) await database.query(`ALTER TABLE messages DETACH PARTITION ${name}`);
  await retention().turn();
  const left = await database.column('SELECT relname FROM pg_class WHERE relname = ANY ($1)', [[dead, archive]]);
  expect(left).toEqual([archive]);
  await expectRest(0, 1);
});

/** How a table is marked. */
const markOf = (table: string) =>
  database.value<string | null>("SELECT obj_description(to_regclass('public.' || $1), 'pg_class')", [table]);

test('a month that could not be detached loses its mark, so that an operator may make an archive of it', async () => {
  await message(5);
  const name = `messages_${month(5).suffix}`;
  const client = await connect(database.url);
  await client.query('BEGIN; LOCK TABLE ONLY messages IN SHARE UPDATE EXCLUSIVE MODE');
  const turn = retention({ messages: KEPT_DAYS }).turn();
  await until(async () => (await markOf(name)) !== null, { what: 'the mark' });
  await turn; // has given up for now
  expect([await markOf(name), await monthsOf('messages')]).toEqual([null, MONTHS_AGO]);
  await client.query('COMMIT');
  await database.query(`ALTER TABLE messages DETACH PARTITION ${name}`);
  await retention({ messages: KEPT_DAYS }).turn();
  expect(await database.query(`SELECT message_id FROM ${name}`)).toHaveLength(1);
});

test('a mark that a process left on a month before it died is taken back', async () => {
  const name = `messages_${month(1).suffix}`; // too young to go
  await database.query(`COMMENT ON TABLE ${name} IS ${MARK}`);
  await retention().turn();
  expect(await markOf(name)).toBeNull();
  await database.query(`ALTER TABLE messages DETACH PARTITION ${name}`);
  await retention().turn();
  expect(await database.query(`SELECT message_id FROM ${name}`)).toEqual([]);
});

/** Whether all of the past has gone that is due. */
async function isDone(): Promise<boolean> {
  for (const table of Object.keys(TABLES)) if ((await monthsOf(table)).join() !== '1') return false;
  const detached =
    "SELECT 1 FROM pg_class WHERE relname ~ '_20\\d\\d_\\d\\d$' AND NOT relispartition AND relkind = 'r'";
  return (await database.query(detached)).length === 0;
}

/** Lives until all is done, each of which dies by itself or ends. Its predecessor may hold the lock for a moment longer. @returns how many died */
async function lives(live: (life: number) => Promise<unknown>): Promise<number> {
  let deaths = 0;
  for (let life = 0; !(await isDone()); life += 1) {
    expect(life).toBeLessThan(500);
    await live(life).catch(() => {
      deaths += 1;
    });
  }
  return deaths;
}

test('turns that are cut off after any statement, before or after it was done, are finished by the next', async () => {
  await message(4);
  await message(3);
  await readEvents();
  const kept = await message(1);
  let left = 0;
  const passes = () => {
    left -= 1;
    if (left === 0) proxy.cut();
    return left > 0;
  };
  // Every other life ends once the statement was done, before its answer arrives.
  let cutsAnswers = false;
  const proxy = await TcpProxy.to(database.url, {
    reader: () => () => void (cutsAnswers || passes()),
    arrives: () => !cutsAnswers || passes(),
  });
  const url = proxy.urlOf(database.url);
  const deaths = await lives((life) => {
    left = 8 + (life % 12); // to connect takes some
    cutsAnswers = life % 2 === 1;
    return retention(BOTH, { url }).turn();
  });
  expect(deaths).toBeGreaterThan(10);
  await expectRest(1, 3);
  expect(await getMessage(database.db(), callerOf(tenantId), kept.message_id)).toMatchObject({ state: 'completed' });
});

test('a process that dies while it deletes what belongs to a month is finished by the next', async () => {
  for (const ago of [5, 4, 3]) await message(ago);
  await readEvents();
  const db = database.db();
  const deaths = await lives((life) => {
    let transactions = 1 + (life % 20);
    const system: Db['system'] = (work) => (transactions-- > 0 ? db.system(work) : Promise.reject(new Error('killed')));
    return retention(BOTH, { db: { ...db, system } }).turn();
  });
  expect(deaths).toBeGreaterThan(3);
  await expectRest(0, 3);
});

test('a database that goes without a word ends the turn, and the next one does its work', async () => {
  await message(4);
  await readEvents();
  const proxy = await TcpProxy.to(database.url);
  // The first statement after the lock is taken waits for ever: its server is gone.
  const silent = retention(BOTH, {
    url: proxy.urlOf(database.url),
    answerMs: 500,
    settleTotals: async () => proxy.silence(),
  });
  await expect(silent.turn()).rejects.toThrow(/timeout/i);
  await retention().turn();
  for (const table of Object.keys(TABLES)) expect(await monthsOf(table)).toEqual([1]);
});
