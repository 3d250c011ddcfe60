import { expect, test } from 'vitest';
import { chooseEmbedder } from '../../../../knowledge/embedding/choose.js';
import { cleanUp } from '../../../setup/clean-up.js';
import { insertTenant } from '../../../setup/core.js';
import { freshDatabase } from '../../../setup/database.js';
import { knowledgeSearch } from '../../../setup/knowledge-rows.js';
import { quality } from '../../../setup/quality/quality-set.js';
import { insertPassages, ranksOf } from '../../../setup/quality/ranks.js';

const database = await freshDatabase();
const embedder = await chooseEmbedder({});
cleanUp(() => embedder?.close());

test('hybrid search finds passages by paraphrases and by exact terms', async () => {
  expect(embedder).toMatchObject({ kind: 'local' });
  const tenantId = await insertTenant(database);
  await insertPassages(database, tenantId, embedder);
  const search = await knowledgeSearch(database, embedder);
  const hits = async (kind: 'paraphrase' | 'exact', mode: 'hybrid' | 'semantic' | 'lexical') =>
    quality(await ranksOf(search, tenantId, kind, mode)).hitAt5;
  const paraphrase = await hits('paraphrase', 'hybrid');
  expect(paraphrase).toBeGreaterThanOrEqual(0.75);
  expect(paraphrase).toBeGreaterThan((await hits('paraphrase', 'lexical')) + 0.3);
  const exact = await hits('exact', 'hybrid');
  expect(exact).toBeGreaterThanOrEqual(0.95);
  expect(exact).toBeGreaterThan(await hits('exact', 'semantic'));
});
