import { createOutbound } from '../../http/outbound.js';
import type { Config } from '../../runtime/config.js';
import type { Embedder } from '../embedder.js';
import { HttpEmbedder } from './http-embedder.js';
import { LocalEmbedder } from './local-embedder.js';
import { isModelInstalled, localModelFolder } from './local-model.js';

/** The address is the operator's own setting, so it may be a private one. */
const ANYWHERE = ['0.0.0.0/0', '::/0'];

/** The settings that choose the embedder. */
export type EmbeddingSettings = Pick<
  Config,
  'EMBEDDINGS_URL' | 'EMBEDDINGS_API_KEY' | 'EMBEDDINGS_MODEL' | 'EMBEDDINGS_MODEL_DIR'
>;

/** An embedder that ends its connections or threads when the platform stops. */
export type ClosableEmbedder = Embedder & { close(): Promise<void> };

/**
 * The embedder of this process: the endpoint at `EMBEDDINGS_URL`, else the local model where it is installed.
 * @returns undefined with neither: then search is by words
 */
export async function chooseEmbedder(config: EmbeddingSettings): Promise<ClosableEmbedder | undefined> {
  const { EMBEDDINGS_URL: url, EMBEDDINGS_API_KEY: apiKey, EMBEDDINGS_MODEL: model } = config;
  if (url && model) {
    const outbound = createOutbound({ allowCidrs: ANYWHERE });
    return Object.assign(new HttpEmbedder({ url, apiKey, model }, outbound), { close: () => outbound.close() });
  }
  const folder = localModelFolder(config);
  return isModelInstalled(folder) ? new LocalEmbedder(folder) : undefined;
}

/** What `npm start` prints of the embedder, in one line. */
export function describeEmbedder(embedder: Embedder | undefined, config: EmbeddingSettings): string {
  if (!embedder) return 'Embeddings: none, knowledge is searched by words (npm run models installs a local model)';
  const where = embedder.kind === 'http' ? new URL(config.EMBEDDINGS_URL ?? '').host : 'local';
  return `Embeddings: ${embedder.model} (${where})`;
}
