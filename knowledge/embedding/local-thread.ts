// A worker thread that embeds with the local model: it gets `{text}` and answers `{vector}` or `{error}`, one text at a time.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { Tokenizer } from '@huggingface/tokenizers';
import { errorMessage } from '../../runtime/errors.js';
import { LOCAL_DIMENSIONS, windowsOf } from './local-model.js';
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
  text: string;
}
export type EmbedReply = { vector: Float32Array } | { error: string };

const { folder } = workerData as { folder: string };
const runtime = createRequire(join(folder, 'package.json'))('onnxruntime-node') as Runtime;
const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as object;
const tokenizer = new Tokenizer(read('tokenizer.json'), read('tokenizer_config.json'));
const session = await runtime.InferenceSession.create(join(folder, 'model.onnx'), {
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
});

/** The vector of what the model reads at once. @param ids with its own first and last token */
async function embedWindow(ids: readonly number[]): Promise<Float32Array | undefined> {
  const tokens = BigInt64Array.from(ids, BigInt);
  const { embedding } = await session.run({ input_ids: new runtime.Tensor('int64', tokens, [1, tokens.length]) });
  return unitVector(embedding.data);
}

/** The vector of a text; of a long one the mean of its windows, each by its length, so that its end counts as much as its beginning. */
async function embed(text: string): Promise<Float32Array> {
  const { ids } = tokenizer.encode(text);
  const [first, last] = [ids[0] as number, ids.at(-1) as number];
  const sum = new Float32Array(LOCAL_DIMENSIONS);
  for (const window of windowsOf(ids.slice(1, -1))) {
    const vector = await embedWindow([first, ...window, last]);
    for (const [at, value] of (vector ?? []).entries()) sum[at] = (sum[at] as number) + value * (window.length + 1);
  }
  const mean = unitVector(sum);
  if (!mean) throw new Error('the embedding has no direction');
  return mean;
}

parentPort?.on('message', ({ text }: EmbedRequest) => {
  embed(text).then(
    (vector) => parentPort?.postMessage({ vector } satisfies EmbedReply, [vector.buffer as ArrayBuffer]),
    (error: unknown) => parentPort?.postMessage({ error: errorMessage(error) } satisfies EmbedReply),
  );
});
