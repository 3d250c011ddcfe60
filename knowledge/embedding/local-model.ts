import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { userCacheDir } from '../../runtime/cache-dir.js';
import type { Config } from '../../runtime/config.js';

/** The model that `npm run models` installs. The name is stored with every chunk, so it changes with the file that makes the vectors. */
export const LOCAL_MODEL = 'all-MiniLM-L6-v2-int8';
export const LOCAL_DIMENSIONS = 384;
/** Tokens of a text that the model reads, its two own ones included; the rest of a longer text is left out. */
export const LOCAL_TOKENS_MAX = 256;

/** Files of an installed model. The last one is written when all others are whole. */
const FILES = [
  'model.onnx',
  'tokenizer.json',
  'tokenizer_config.json',
  join('node_modules', 'onnxruntime-node', 'package.json'),
  'installed.json',
];

/** The folder of the local model: `EMBEDDINGS_MODEL_DIR`, else one in the user's cache folder. */
export function localModelFolder(config: Pick<Config, 'EMBEDDINGS_MODEL_DIR'>): string {
  return config.EMBEDDINGS_MODEL_DIR ?? join(userCacheDir(), 'models', LOCAL_MODEL);
}

/** Whether the local model and the program that runs it are installed there. */
export function isModelInstalled(folder: string): boolean {
  return FILES.every((file) => existsSync(join(folder, file)));
}
