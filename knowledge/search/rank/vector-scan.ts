import { setImmediate as nextTurn } from 'node:timers/promises';
import { countChunks, type Segment } from '../index/segment.js';

/** Vectors that are compared in one turn of the event loop: some two milliseconds. */
const VECTORS_PER_TURN = 8_192;

/** The product of two vectors of length 1, which is their cosine. Four sums at once, which the processor adds side by side. */
function cosine(query: Float32Array, vectors: Float32Array, from: number): number {
  const { length } = query;
  const even = length - (length % 4);
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let at = 0; at < even; at += 4) {
    a += (query[at] as number) * (vectors[from + at] as number);
    b += (query[at + 1] as number) * (vectors[from + at + 1] as number);
    c += (query[at + 2] as number) * (vectors[from + at + 2] as number);
    d += (query[at + 3] as number) * (vectors[from + at + 3] as number);
  }
  for (let at = even; at < length; at++) a += (query[at] as number) * (vectors[from + at] as number);
  return a + b + c + d;
}

/**
 * The cosine of a query with every chunk, in the order of the segments: exact search. NaN for chunks without a vector and those that are not
 * considered. Gives other work its turn in between.
 * @param considered by source: see `NamespaceIndex.considered`
 */
export async function scanVectors(
  segments: readonly Segment[],
  considered: Uint8Array,
  query: Float32Array,
): Promise<Float32Array> {
  const cosines = new Float32Array(countChunks(segments)).fill(Number.NaN);
  let at = 0;
  for (const { count, slots, hasVector, vectors } of segments)
    for (let chunk = 0; chunk < count; chunk++, at++) {
      if (hasVector[chunk] && considered[slots[chunk] as number])
        cosines[at] = cosine(query, vectors, chunk * query.length);
      if (at % VECTORS_PER_TURN === VECTORS_PER_TURN - 1) await nextTurn();
    }
  return cosines;
}
