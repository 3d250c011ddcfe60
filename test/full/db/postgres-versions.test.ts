import { describe, expect, test } from 'vitest';
import { startPostgres } from '../../../embedded/postgres.js';
import { userCacheDir } from '../../../runtime/cache-dir.js';
import { POSTGRES_VERSIONS, postgresPackage } from '../../../scripts/test/postgres-versions.mjs';
import { scratch, silent } from '../../embedded/host.js';
import type { Dispatched } from '../../setup/agent.js';
import { cleanUp } from '../../setup/clean-up.js';
import { databaseAt, type FreshDatabase } from '../../setup/database.js';
import { startPlatform } from '../../setup/platform/platform.js';
import { withClient } from '../../setup/with-client.js';
import { byText, hold, joinType, to } from '../../system/fixture.js';

/** An empty database on a server of this version. Its owner may create roles and is no superuser, as managed servers give it out. */
async function databaseOn(version: number): Promise<FreshDatabase> {
  const folder = await scratch();
  const packageFolder = postgresPackage(version, userCacheDir());
  const server = await startPostgres({ dataDir: folder.dir, log: silent, onLine: () => undefined, packageFolder });
  await withClient(server.url, async (superuser) => {
    await superuser.query("CREATE ROLE fleet_login LOGIN CREATEROLE PASSWORD 'secret'");
    await superuser.query('ALTER DATABASE fleet OWNER TO fleet_login');
  });
  const url = new URL(server.url);
  url.username = 'fleet_login';
  url.password = 'secret';
  const end = async () => {
    await server.stop();
    await folder.remove();
  };
  const database = databaseAt(url.href, end, server.url);
  cleanUp(database.drop);
  return database;
}

// The other tests run on the version that the platform brings.
describe.each(POSTGRES_VERSIONS)('on Postgres %i', (version) => {
  test('a platform migrates, answers, takes from a queue and lets people decide, with a login that is no superuser', async () => {
    const database = await databaseOn(version);
    const { platform } = await startPlatform({}, { database });
    expect(await database.value('SHOW server_version')).toMatch(new RegExp(`^${version}\\.`));
    const held: Dispatched[] = [];
    const agent = await joinType(platform, 'worker', byText(held), 1);
    const first = await hold(platform.client, agent, to('worker'));
    const next = await platform.client.send('next', { ...to('worker'), blocking: false });
    expect((await platform.client.message(next.id)).waits_for?.kind).toBe('room');
    first.dispatch.result('first');
    await platform.client.untilState(first.task.id, 'completed');
    await platform.client.untilState(next.id, 'completed');
    const asked = await platform.client.send('ask', { ...to('worker'), blocking: false });
    await platform.client.untilState(asked.id, 'input-required');
    const answer = await platform.client.post(`/messages/${asked.id}/resolve`, { resolution: 'confirmed' });
    expect(answer.status).toBe(200);
    expect((await platform.client.untilState(asked.id, 'completed')).assistant_output).toBe('ask: confirmed');
    await platform.restart();
    expect((await platform.client.message(asked.id)).state).toBe('completed');
  }, 180_000);
});
