import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chooseEmbedder, describeEmbedder } from '../../../knowledge/embedding/choose.js';
import { readConfig } from '../../../runtime/config.js';
import { cleanUp } from '../../setup/clean-up.js';

const nothing = { EMBEDDINGS_MODEL_DIR: join(mkdtempSync(join(tmpdir(), 'fleet-models-')), 'none') };

test('an endpoint goes before the local model, and its host is named without the key', async () => {
  const config = {
    ...nothing,
    EMBEDDINGS_URL: 'http://10.0.0.7:11434/v1',
    EMBEDDINGS_API_KEY: 'secret',
    EMBEDDINGS_MODEL: 'nomic',
  };
  const embedder = await chooseEmbedder(config);
  cleanUp(() => embedder?.close());
  expect(embedder).toMatchObject({ kind: 'http', model: 'nomic' });
  expect(describeEmbedder(embedder, config)).toBe('Embeddings: nomic (10.0.0.7:11434)');
});

test('with neither endpoint nor local model there is none, and the line says what to do', async () => {
  const embedder = await chooseEmbedder(nothing);
  expect(embedder).toBeUndefined();
  expect(describeEmbedder(embedder, nothing)).toContain('npm run models');
});

test('an endpoint without a model is refused at the start', () => {
  expect(() => readConfig({ EMBEDDINGS_URL: 'http://10.0.0.7/v1' })).toThrow('EMBEDDINGS_MODEL: must be set together');
});
