import type { Vocabulary } from './vocabulary.js';

/** A chunk as it comes into an index. */
export interface IndexedChunk {
  /** The number of its source in the index. */
  slot: number;
  ordinal: number;
  terms: readonly string[];
  /** Undefined without a vector of the present model. */
  vector: Float32Array | undefined;
}

/** Chunks of an index in typed arrays. It never changes: sources that are gone are left out when segments are merged. */
export interface Segment {
  readonly count: number;
  /** For each chunk: its source, its place in it, the number of its terms, whether it has a vector. */
  readonly slots: Uint32Array;
  readonly ordinals: Uint32Array;
  readonly lengths: Uint32Array;
  readonly hasVector: Uint8Array;
  /** Where its different terms begin in `termIds` and `frequencies`; one more entry than chunks. */
  readonly starts: Uint32Array;
  readonly termIds: Uint32Array;
  readonly frequencies: Uint8Array;
  /** All vectors one after the other; zeros where there is none. Empty where the database searches vectors. */
  readonly vectors: Float32Array;
}

/** How many chunks several segments have. */
export function countChunks(segments: readonly Segment[]): number {
  return segments.reduce((sum, { count }) => sum + count, 0);
}

/**
 * How many chunks of several segments a query considers, and how many of them have a vector.
 * @param considered 1 for each source that the query considers, by slot
 */
export function countConsidered(
  segments: readonly Segment[],
  considered: Uint8Array,
): { chunks: number; chunksWithVector: number } {
  let chunks = 0;
  let chunksWithVector = 0;
  for (const { count, slots, hasVector } of segments)
    for (let index = 0; index < count; index++) {
      if (!considered[slots[index] as number]) continue;
      chunks += 1;
      chunksWithVector += hasVector[index] as number;
    }
  return { chunks, chunksWithVector };
}

/** Memory of a segment. */
export function segmentBytes(segment: Segment): number {
  const { slots, ordinals, lengths, hasVector, starts, termIds, frequencies, vectors } = segment;
  return [slots, ordinals, lengths, hasVector, starts, termIds, frequencies, vectors].reduce(
    (sum, { byteLength }) => sum + byteLength,
    0,
  );
}

function allocate(count: number, postings: number, vectorFloats: number): Segment {
  return {
    count,
    slots: new Uint32Array(count),
    ordinals: new Uint32Array(count),
    lengths: new Uint32Array(count),
    hasVector: new Uint8Array(count),
    starts: new Uint32Array(count + 1),
    termIds: new Uint32Array(postings),
    frequencies: new Uint8Array(postings),
    vectors: new Float32Array(vectorFloats),
  };
}

/** @param dimensions of the vectors that the segment keeps; 0 to keep none */
export function buildSegment(chunks: readonly IndexedChunk[], vocabulary: Vocabulary, dimensions: number): Segment {
  // The numbers of all terms, of which each chunk keeps the different ones. No map for each chunk: a base may have millions of terms.
  const termIds = new Uint32Array(chunks.reduce((sum, { terms }) => sum + terms.length, 0));
  let next = 0;
  for (const { terms } of chunks) for (const term of terms) termIds[next++] = vocabulary.add(term);
  const frequencies = new Uint8Array(termIds.length);
  const counts = new Uint32Array(vocabulary.size);
  const starts = new Uint32Array(chunks.length + 1);
  let from = 0;
  let at = 0;
  for (const [index, { terms }] of chunks.entries()) {
    starts[index] = at;
    for (let term = from; term < from + terms.length; term++) {
      const termId = termIds[term] as number;
      if (counts[termId] === 0) termIds[at++] = termId; // never ahead of what is read
      counts[termId] = (counts[termId] as number) + 1;
    }
    for (let posting = starts[index] as number; posting < at; posting++) {
      const termId = termIds[posting] as number;
      frequencies[posting] = Math.min(255, counts[termId] as number);
      counts[termId] = 0;
    }
    from += terms.length;
  }
  starts[chunks.length] = at;
  const segment = allocate(chunks.length, at, chunks.length * dimensions);
  segment.starts.set(starts);
  segment.termIds.set(termIds.subarray(0, at));
  segment.frequencies.set(frequencies.subarray(0, at));
  for (const [index, { slot, ordinal, terms, vector }] of chunks.entries()) {
    segment.slots[index] = slot;
    segment.ordinals[index] = ordinal;
    segment.lengths[index] = terms.length;
    if (!vector) continue;
    segment.hasVector[index] = 1;
    if (dimensions > 0) segment.vectors.set(vector, index * dimensions);
  }
  return segment;
}

/** One segment with the chunks of several whose sources are alive. */
export function mergeSegments(segments: readonly Segment[], isAlive: Uint8Array, dimensions: number): Segment {
  let count = 0;
  let postings = 0;
  for (const { count: size, slots, starts } of segments)
    for (let index = 0; index < size; index++) {
      if (!isAlive[slots[index] as number]) continue;
      count += 1;
      postings += (starts[index + 1] as number) - (starts[index] as number);
    }
  const merged = allocate(count, postings, count * dimensions);
  let next = 0;
  let at = 0;
  for (const segment of segments)
    for (let index = 0; index < segment.count; index++) {
      if (!isAlive[segment.slots[index] as number]) continue;
      const [from, to] = [segment.starts[index] as number, segment.starts[index + 1] as number];
      merged.slots[next] = segment.slots[index] as number;
      merged.ordinals[next] = segment.ordinals[index] as number;
      merged.lengths[next] = segment.lengths[index] as number;
      merged.hasVector[next] = segment.hasVector[index] as number;
      merged.starts[next] = at;
      merged.termIds.set(segment.termIds.subarray(from, to), at);
      merged.frequencies.set(segment.frequencies.subarray(from, to), at);
      merged.vectors.set(segment.vectors.subarray(index * dimensions, (index + 1) * dimensions), next * dimensions);
      at += to - from;
      next += 1;
    }
  merged.starts[count] = at;
  return merged;
}
