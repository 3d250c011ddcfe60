import { beforeAll, beforeEach, expect, onTestFinished } from 'vitest';
import { openDb } from '../../db/pool.js';
import type { DispatchRef } from '../../messages/dispatch/dispatches.js';
import { createLogger } from '../../runtime/logger.js';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { TcpProxy } from '../setup/platform/tcp-proxy.js';
import { type FixtureAgent, receive } from './fixture-agent.js';
import { MeshFixture, type NodeOptions } from './mesh-fixture.js';

// Set anew for each file: those of a worker share this module, and run one after the other.
export let database: FreshDatabase;
export let fixture: MeshFixture;

/** The file gets a database of its own and a fixture on it; each of its tests gets a new tenant, where these agents are registered. */
export function useMesh(...instanceIds: string[]): void {
  beforeAll(async () => {
    database = await freshDatabase();
    fixture = new MeshFixture(database);
    return database.drop;
  });
  beforeEach(async () => {
    await fixture.reset();
    for (const instanceId of instanceIds) await fixture.register(instanceId);
  });
}

/** The agent `a` on a node of its own. */
export async function joined(options: NodeOptions = {}) {
  const node = await fixture.node(options);
  return { node, ...(await node.join('a')) };
}

/** The same, with a dispatch that it has. */
export async function atWork(metadata: Record<string, unknown> = {}, options: NodeOptions = {}) {
  const { node, agent, welcome } = await joined(options);
  return { node, agent, welcome, ...(await node.send(agent, 'hello', metadata)) };
}

/** The agent gets a dispatch again and answers it: its message is completed. */
export async function finishes(agent: FixtureAgent, ref: DispatchRef, end: Promise<unknown>): Promise<void> {
  (await receive(agent, ref)).result('hi');
  expect(await end).toMatchObject({ kind: 'closed' });
  expect((await fixture.message(ref)).state).toBe('completed');
}

/** A way to the database that a test can cut. */
export async function ownWay() {
  const path = await TcpProxy.to(database.url);
  const db = openDb({ url: path.urlOf(database.url), log: createLogger({ level: 'silent' }) });
  onTestFinished(() => db.close());
  return { path, db };
}

/** A tenant with the agent `a` whose nodes have such a way. */
export async function cutOffFixture() {
  const { path, db } = await ownWay();
  const cutOff = await new MeshFixture(database, db).reset();
  await cutOff.register('a');
  return { path, cutOff };
}
