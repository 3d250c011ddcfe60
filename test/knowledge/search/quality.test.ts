import { expect, test } from 'vitest';
import { insertTenant } from '../../setup/core.js';
import { freshDatabase } from '../../setup/database.js';
import { knowledgeSearch } from '../../setup/knowledge-rows.js';
import { quality, readPassages, readQueries } from '../../setup/quality/quality-set.js';
import { insertPassages, ranksOf } from '../../setup/quality/ranks.js';

const database = await freshDatabase();

test('the committed set is large enough, and each query has one passage that answers it', () => {
  const ids = readPassages().map(({ id }) => id);
  expect(ids.length).toBeGreaterThanOrEqual(300);
  expect(new Set(ids).size).toBe(ids.length);
  const queries = { paraphrase: readQueries('paraphrase'), exact: readQueries('exact') };
  expect(queries.paraphrase.length).toBeGreaterThanOrEqual(100);
  expect(queries.exact.length).toBeGreaterThanOrEqual(50);
  for (const { expected } of [...queries.paraphrase, ...queries.exact]) expect(ids).toContain(expected);
});

test('without a model, exact terms are found by words', async () => {
  const tenantId = await insertTenant(database);
  await insertPassages(database, tenantId, undefined);
  const search = await knowledgeSearch(database, undefined);
  expect(quality(await ranksOf(search, tenantId, 'exact', 'lexical')).hitAt5).toBeGreaterThanOrEqual(0.95);
  expect(quality(await ranksOf(search, tenantId, 'paraphrase', 'lexical')).hitAt5).toBeGreaterThanOrEqual(0.25);
});
