import { expect, test } from 'vitest';
import { TestBase } from '../../knowledge/fixture.js';
import { cleanUp } from '../../setup/clean-up.js';
import { startBarePlatform } from '../../setup/platform/platform.js';
import { allEnded, killEach, type TreeProcess } from '../../setup/platform/process-tree.js';
import { until } from '../../setup/until.js';
import { withClient } from '../../setup/with-client.js';
import { endsOf, expectAll, ingestAll, RECOVERY_MS, SOURCES, versionsOf } from './many-documents.js';

const platform = await startBarePlatform();
cleanUp(() => platform.kill9());

/** Rows as the owner sees them; the server may be away. */
const query = (text: string, values: unknown[]) =>
  withClient(platform.devJson().database_url, async (client) => {
    return (await client.query<Record<string, unknown>>(text, values)).rows;
  });

const POSTGRES = /postgres(?!ql:).*-D|bin\/postgres/;
const TEMPORAL = /temporal/;
const KILLS: [string, () => Promise<void>][] = [
  [
    'the worker, Postgres and Temporal at once',
    async () => {
      const servers = [...(await serversOf(POSTGRES)), ...(await serversOf(TEMPORAL))];
      await platform.kill9();
      await allEnded(servers);
      await platform.start();
    },
  ],
  ['Postgres', () => killServer(POSTGRES)],
  ['Temporal', () => killServer(TEMPORAL)],
];

async function serversOf(command: RegExp): Promise<TreeProcess[]> {
  const servers = await platform.children(command);
  expect(servers.length).toBeGreaterThan(0);
  return servers;
}

async function killServer(command: RegExp): Promise<void> {
  const servers = await serversOf(command);
  killEach(servers);
  await allEnded(servers);
}

test.each(KILLS)(
  '500 documents are taken in once each, and none half, though a kill ends %s in the middle',
  async (_, kill) => {
    const base = await until(() => TestBase.create(platform.client), { timeoutMs: RECOVERY_MS, what: 'a new base' });
    await endsOf(base, await ingestAll(base, 'first'));
    expect(await versionsOf(query, base, 'second')).toEqual({ sources: SOURCES, mixed: 0, renewed: 0 });
    const jobs = await ingestAll(base, 'second');
    await until(async () => (await versionsOf(query, base, 'second')).renewed > 20, {
      timeoutMs: RECOVERY_MS,
      what: 'a part of the documents',
    });
    await kill();
    const found = await until(() => versionsOf(query, base, 'second'), {
      timeoutMs: RECOVERY_MS,
      what: 'the database',
    });
    expect(found.mixed).toBe(0);
    expect(found.renewed).toBeLessThan(SOURCES);
    await expectAll(query, base, jobs, { version: 'second', result: 'updated' });
  },
  500_000,
);
