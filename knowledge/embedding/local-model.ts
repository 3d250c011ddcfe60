import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { userCacheDir } from '../../runtime/cache-dir.js';
import type { Config } from '../../runtime/config.js';

/** The model that `npm run models` installs. The name is stored with every chunk, so it changes with the file that makes the vectors. */
export const LOCAL_MODEL = 'all-MiniLM-L6-v2-int8';
export const LOCAL_DIMENSIONS = 384;
/** Tokens that the model reads at once, its two own ones included. A longer text is read in several windows. */
const LOCAL_TOKENS_MAX = 256;
/**
 * Windows of one text: 4,064 tokens. A chunk of the largest size has as many at most, in whatever language; a text of more, such as one of
 * punctuation alone, loses the rest.
 */
const LOCAL_WINDOWS_MAX = 16;

/**
 * Divides the tokens of a text, without the model's own, into windows of about the same length: `LOCAL_WINDOWS_MAX` at most, which with the
 * model's own tokens have `LOCAL_TOKENS_MAX` each. What is beyond them is left out.
 */
export function windowsOf(tokens: readonly number[]): number[][] {
  const room = LOCAL_TOKENS_MAX - 2;
  const kept = tokens.slice(0, room * LOCAL_WINDOWS_MAX);
  const count = Math.max(1, Math.ceil(kept.length / room));
  const at = (window: number) => Math.round((kept.length * window) / count);
  return Array.from({ length: count }, (_, window) => kept.slice(at(window), at(window + 1)));
}

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
