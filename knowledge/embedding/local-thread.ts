// A worker thread that embeds with the local model: it gets `{id, text}` and answers `{id, vector}` or `{id, error}`.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { Tokenizer } from '@huggingface/tokenizers';
import { errorMessage } from '../../runtime/errors.js';
import { LOCAL_TOKENS_MAX } from './local-model.js';
import { unitVector } from './vectors.js';

/** The part of onnxruntime-node that is used. It is installed with the model, not with the platform. */
interface Runtime {
  Tensor: new (type: 'int64', data: BigInt64Array, dims: number[]) => unknown;
  InferenceSession: {
    create(
      path: string,
      options: { intraOpNumThreads: number; interOpNumThreads: number },
    ): Promise<{ run(inputs: Record<string, unknown>): Promise<{ embedding: { data: Float32Array } }> }>;
  };
}

export interface EmbedRequest {
  id: number;
  text: string;
}
export type EmbedReply = { id: number; vector: Float32Array } | { id: number; error: string };

const { folder } = workerData as { folder: string };
const runtime = createRequire(join(folder, 'package.json'))('onnxruntime-node') as Runtime;
const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as object;
const tokenizer = new Tokenizer(read('tokenizer.json'), read('tokenizer_config.json'));
const session = await runtime.InferenceSession.create(join(folder, 'model.onnx'), {
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
});

/** Token ids of a text, with the model's own first and last one. A long text loses its end before that one. */
function tokenIds(text: string): number[] {
  const { ids } = tokenizer.encode(text);
  return ids.length <= LOCAL_TOKENS_MAX ? ids : [...ids.slice(0, LOCAL_TOKENS_MAX - 1), ids.at(-1) as number];
}

async function embed(text: string): Promise<Float32Array> {
  const ids = BigInt64Array.from(tokenIds(text), BigInt);
  const { embedding } = await session.run({ input_ids: new runtime.Tensor('int64', ids, [1, ids.length]) });
  const vector = unitVector(embedding.data);
  if (!vector) throw new Error('the embedding has no direction');
  return vector;
}

parentPort?.on('message', ({ id, text }: EmbedRequest) => {
  embed(text).then(
    (vector) => parentPort?.postMessage({ id, vector } satisfies EmbedReply, [vector.buffer as ArrayBuffer]),
    (error: unknown) => parentPort?.postMessage({ id, error: errorMessage(error) } satisfies EmbedReply),
  );
});
