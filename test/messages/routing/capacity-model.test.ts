import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openDb } from '../../../db/pool.js';
import { changeConnection, openConnection } from '../../../mesh/connection/connection-rows.js';
import { cancelMessage } from '../../../messages/cancel.js';
import type { DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { PlatformError } from '../../../runtime/errors.js';
import { createLogger } from '../../../runtime/logger.js';
import { cleanUp } from '../../setup/clean-up.js';
import { freshDatabase } from '../../setup/database.js';
import { type Action, expectModel, type Script, Seen, type Step } from '../../setup/model.js';
import { MESH, RecordFixture } from '../../setup/record-fixture.js';
import { runsOf } from '../../setup/seed.js';
import { until } from '../../setup/until.js';

const AGENTS = 12;
const NODES = [MESH, 'mesh_2'];
const WISHES = [{ agent_type: 'worker' }, { agent_type: 'worker', skill_id: 'sums' }, { instance_id: 'a1' }];

interface SentDispatch extends DispatchRef {
  session_id: string;
  instance_id: string;
  epoch: number;
}

const database = await freshDatabase();
/** Each has connections and groups of calls of its own. */
const processes = [1, 2, 3].map(() => {
  const db = openDb({ url: database.url, max: 8, log: createLogger({ level: 'error' }) });
  cleanUp(() => db.close());
  return new RecordFixture(database, { db });
});
const [first] = processes as [RecordFixture, ...RecordFixture[]];
const seen = new Seen();

/** A tenant with a dozen agents of one type on two nodes. Each may have one to three sessions, or messages: here every message has a session. */
async function begin(): Promise<void> {
  await first.reset();
  for (const process of processes) process.tenantId = first.tenantId;
  for (let n = 0; n < AGENTS; n += 1) {
    const skills = n < AGENTS / 2 ? ['sums'] : [];
    const room = 1 + (n % 3);
    const bounds =
      n % 4 < 2 ? { max_concurrent_sessions: room } : { max_concurrent_sessions: 0, max_concurrent_tasks: room };
    await first.agent(`a${n}`, { mesh_id: NODES[n % 2], ...bounds, skills });
  }
}

/** Of each agent its room, the sessions with a dispatch on it by the dispatches themselves, and its load as routing counts it. */
const agents = () =>
  database.query<{ instance_id: string; room: number; sessions: number; load: number; epoch: number; mesh_id: string }>(
    `SELECT a.instance_id, greatest(a.max_concurrent_sessions, a.max_concurrent_tasks) AS room, agent_load(a.tenant_id, a.instance_id) AS load, a.mesh_id,
            a.connection_epoch::int AS epoch, (SELECT count(DISTINCT m.session_id)::int FROM dispatches d JOIN messages m USING (tenant_id, message_id)
              WHERE d.tenant_id = a.tenant_id AND d.instance_id = a.instance_id AND d.state IN ('open', 'sent')) AS sessions
       FROM agents a WHERE a.tenant_id = $1 ORDER BY a.instance_id`,
    [first.tenantId],
  );
const sent = () =>
  database.query<SentDispatch>(
    `SELECT d.tenant_id, d.message_id, m.session_id, d.dispatch_id, d.instance_id, d.epoch FROM dispatches d
       JOIN messages m USING (tenant_id, message_id) WHERE d.tenant_id = $1 AND d.state = 'sent' ORDER BY d.dispatch_id`,
    [first.tenantId],
  );
const waiting = () =>
  database.column<string>(
    `SELECT message_id FROM running_messages WHERE tenant_id = $1 AND state = 'submitted' ORDER BY created_at, message_id`,
    [first.tenantId],
  );

/** A step of a waiting message; an agent with room takes it, or what waits before it. @returns whether an agent has it now */
async function route(process: RecordFixture, message_id: string): Promise<boolean> {
  const ref = { tenant_id: first.tenantId, message_id };
  const isSent = (await process.kind(ref)) === 'result';
  seen.note('routed', isSent || undefined);
  return isSent;
}

async function cancel(process: RecordFixture, message_id: string): Promise<void> {
  try {
    await cancelMessage(process.core, { tenant_id: first.tenantId, message_id }, 'test');
    seen.note('canceled');
  } catch (error) {
    // Another of the moment may have ended it.
    if (!(error instanceof PlatformError) || error.code !== 'ALREADY_TERMINAL') throw error;
  }
}

/** The agent's socket is lost for good: what it had fails. */
async function lose(process: RecordFixture, instance_id: string): Promise<void> {
  const agent = (await agents()).find((one) => one.instance_id === instance_id && one.mesh_id);
  if (!agent) return;
  const connection = { tenant_id: first.tenantId, instance_id, epoch: agent.epoch };
  await process.core.db.tenant(first.tenantId, (tx) => changeConnection(tx, connection, { status: 'offline' }));
  for (const dispatch of (await sent()).filter((one) => one.instance_id === instance_id))
    seen.note('lost', await process.dispatches.failAsLost(dispatch));
}

/** The agent connects, to another node than before. Without a resume token, what it had fails. */
async function connect(process: RecordFixture, instance_id: string, node: number): Promise<void> {
  const tenant_id = first.tenantId;
  const mesh_id = NODES[node % NODES.length] as string;
  const hello = { instance_id, agent_type: 'worker' };
  const opening = { tenant_id, instance_id, mesh_id, hello, decided: [], resumes: null };
  const opened = await process.core.db.tenant(tenant_id, (tx) => openConnection(tx, opening));
  if (typeof opened === 'string') throw new Error(`no connection: ${opened}`);
  for (const ref of opened.open) await process.dispatches.failAsLost({ ...ref, tenant_id });
  seen.note('returned');
}

type Args = { target: number; process: number };
const pick = <T>(all: T[], target: number): T | undefined => all[target % all.length];
const inProcess = (work: (process: RecordFixture, target: number) => Promise<unknown>): Action<void, Args> => ({
  args: fc.record({ target: fc.nat(40), process: fc.nat(processes.length - 1) }),
  run: (_world, { target, process }) => work(pick(processes, process) ?? first, target),
});
const onSent = (work: (process: RecordFixture, dispatch: SentDispatch) => Promise<unknown>) =>
  inProcess(async (process, target) => {
    const dispatch = pick(await sent(), target);
    if (dispatch) await work(process, dispatch);
  });
const ending = (state: 'completed' | 'input-required') =>
  onSent(async (process, { epoch, ...ref }) => {
    const produced = { artifacts: [], usage: null };
    const input = state === 'input-required' ? { input_request: { title: 'Go on?' } } : {};
    seen.note(state, await process.dispatches.end({ ...ref, produced }, { state, artifacts: [], ...input }, epoch));
  });

/** What happens to a fleet at work. */
const actions = {
  send: inProcess(async (process, target) => {
    seen.note((await process.send(pick(WISHES, target), { reachesNodes: true })).verdict);
  }),
  route: inProcess(async (process, target) => {
    const message = pick(await waiting(), target);
    if (message) await route(process, message);
  }),
  complete: ending('completed'),
  ask: ending('input-required'),
  cancel: onSent((process, { message_id }) => cancel(process, message_id)),
  disconnect: inProcess((process, target) => lose(process, `a${target % AGENTS}`)),
  connect: inProcess((process, target) => connect(process, `a${target % AGENTS}`, target)),
};

/** So many steps of one kind at once, in all processes. Every third target of `send` names the type only. */
const many = (name: keyof typeof actions, count: number): Step[] =>
  Array.from({ length: count }, (_, n) => [name, { target: name === 'send' ? 0 : n, process: n }]);
/** Does everything that is counted, whatever chance does. */
const SURE: Script = [
  ...Array.from({ length: 4 }, () => many('send', 1)),
  ...[many('route', 4), many('route', 4)],
  ...[many('complete', 1), many('ask', 1), many('cancel', 1), many('disconnect', 12), many('connect', 12)],
  ...[many('send', 36), many('complete', 4), many('route', 6)],
];

async function expectWithinBounds(): Promise<void> {
  for (const { instance_id, room, sessions, load } of await agents()) {
    expect(load, `the load of ${instance_id}`).toBe(sessions);
    expect(sessions, `the sessions of ${instance_id}`).toBeLessThanOrEqual(room);
  }
}

/** Ends what is not over: nothing is counted then. */
async function finish(): Promise<void> {
  const unfinished = `SELECT message_id FROM messages WHERE tenant_id = $1 AND state NOT IN ('completed', 'failed', 'canceled')`;
  for (const message_id of await database.column<string>(unfinished, [first.tenantId])) await cancel(first, message_id);
  expect((await agents()).filter(({ load, sessions }) => load + sessions > 0)).toEqual([]);
}

/** All the room that the agents say they have can be used, and no more. */
async function expectAllRoomUsable(): Promise<void> {
  const fleet = await agents();
  await Promise.all(fleet.map(({ instance_id }, n) => connect(pick(processes, n) ?? first, instance_id, n)));
  const room = fleet.reduce((sum, one) => sum + one.room, 0);
  await Promise.all(
    Array.from({ length: room }, (_, n) => pick(processes, n)?.send(WISHES[0], { reachesNodes: true })),
  );
  const isAllSent = async (): Promise<boolean> => {
    await Promise.all((await waiting()).map((message_id, n) => route(pick(processes, n) ?? first, message_id)));
    return (await waiting()).length === 0;
  };
  await until(isAllSent, { what: 'all messages sent' });
  expect((await agents()).map(({ sessions }) => sessions)).toEqual(fleet.map((one) => one.room));
  const { message_id } = await first.send(WISHES[0], { reachesNodes: true });
  expect(await route(first, message_id)).toBe(false);
  await expectWithinBounds();
}

test('whatever happens at the same time, no agent has more sessions than it may, and none is lost count of', async () => {
  await expectModel({
    ...{ actions, weights: { send: 18, complete: 6, route: 6, ask: 2, cancel: 2, disconnect: 2, connect: 2 } },
    ...{ moments: [3, 5], atOnce: 16, runs: runsOf(1, 4), examples: [SURE] },
    begin,
    check: expectWithinBounds,
    end: async () => {
      await finish();
      await expectAllRoomUsable();
      await finish();
    },
  });
  const dispatches = ['dispatched', 'queued', 'routed', 'completed', 'input-required'];
  seen.expectAll(...dispatches, 'canceled', 'lost', 'returned');
}, 600_000);
