import { beforeEach, expect, test } from 'vitest';
import { deleteTenant } from '../../../auth/tenants.js';
import { createOutbound } from '../../../http/outbound.js';
import { testAuthor } from '../../setup/author.js';
import { cleanUp } from '../../setup/clean-up.js';
import { insertTenant } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { knowledgeOf } from '../../setup/knowledge.js';
import { ask, insertBase, insertSource, knowledgeSearch } from '../../setup/knowledge-rows.js';
import { until } from '../../setup/until.js';

const database = await freshDatabase();
const NAMESPACE = 'handbook';
let tenantId: string;
beforeEach(async () => {
  tenantId = await insertTenant(database);
});

async function fill(namespace: string): Promise<void> {
  await insertBase(database, tenantId, namespace);
  await insertSource(database, { tenantId, namespace, sourceId: 'doc', texts: ['a boiler'] });
}

const searchIn = (search: Awaited<ReturnType<typeof knowledgeSearch>>, namespace: string) =>
  ask(search, { tenantId, namespaces: [namespace] }, 'boiler');

test('nothing of a knowledge base stays in the memory of the process that deletes it', async () => {
  const search = await knowledgeSearch(database, undefined);
  const outbound = createOutbound({ allowCidrs: [] });
  cleanUp(() => outbound.close());
  const knowledge = await knowledgeOf(database, outbound, undefined, search);
  expect(await search.memory()).toEqual({ bases: 0, bytes: 0 });
  await fill(NAMESPACE);
  expect((await searchIn(search, NAMESPACE)).results).toHaveLength(1);
  expect(await search.memory()).toEqual({ bases: 1, bytes: expect.any(Number) });
  await knowledge.delete({ tenantId, credentialId: null, full: true }, NAMESPACE);
  expect(await search.memory()).toEqual({ bases: 0, bytes: 0 });
});

test('nor, a little later, in that of another process; what was not deleted stays', async () => {
  const search = await knowledgeSearch(database, undefined, { dropEveryMs: 20 });
  const bases = async () => (await search.memory()).bases;
  for (const namespace of [NAMESPACE, 'kept']) {
    await fill(namespace);
    await searchIn(search, namespace);
  }
  expect(await bases()).toBe(2);
  await database.query('UPDATE knowledge_bases SET deleted_at = now() WHERE tenant_id = $1 AND namespace = $2', [
    tenantId,
    NAMESPACE,
  ]);
  await until(async () => (await bases()) === 1, { what: 'the drop of the deleted base' });
  await deleteTenant(database.db(), testAuthor(tenantId));
  await until(async () => (await bases()) === 0, { what: 'the drop of what the deleted tenant had' });
});
