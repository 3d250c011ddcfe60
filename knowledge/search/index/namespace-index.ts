import { buildSegment, type IndexedChunk, mergeSegments, type Segment, segmentBytes } from './segment.js';
import { Vocabulary } from './vocabulary.js';

/** Segments below this size are merged when there are more than so many of them. */
const SMALL_CHUNKS = 2_048;
const SMALL_SEGMENTS_MAX = 16;
/** The share of chunks of sources that are gone at which all segments are merged. */
const DEAD_SHARE_MAX = 0.25;
/** Sources that an index has seen before it can be worn. */
const WORN_SOURCES_MIN = 20_000;
/** What a source takes, roughly. */
const SOURCE_BYTES = 250;

/** A source as it was indexed. */
export interface IndexedSource {
  sourceId: string;
  /** Of its chunks: see `knowledge_sources.version`. */
  version: number;
  /** Of its vectors; null without. */
  model: string | null;
}

/** A chunk of a source that is to be indexed. */
export type NewChunk = Omit<IndexedChunk, 'slot'>;

/** One knowledge base in memory: the words of its chunks, and their vectors unless the database searches those. */
export class NamespaceIndex {
  readonly vocabulary = new Vocabulary();
  /** Replaced as a whole with each change: a scan goes on with those that it began with. */
  #segments: readonly Segment[] = [];
  readonly #sources: IndexedSource[] = [];
  #isAlive = new Uint8Array(64);
  readonly #slotOf = new Map<string, number>();
  #frequencies = new Uint32Array(1_024);
  #chunks = 0;
  #deadChunks = 0;
  #terms = 0;

  /**
   * @param dimensions of the vectors that count; 0 where none is needed
   * @param keepsVectors whether they are kept, or the database searches them
   */
  constructor(
    readonly dimensions: number,
    private readonly keepsVectors: boolean,
  ) {}

  /** Floats that are kept of each chunk. */
  get floats(): number {
    return this.keepsVectors ? this.dimensions : 0;
  }

  get segments(): readonly Segment[] {
    return this.#segments;
  }
  /** Chunks of the sources that are there. */
  get chunks(): number {
    return this.#chunks;
  }
  get averageLength(): number {
    return this.#chunks === 0 ? 1 : Math.max(1, this.#terms / this.#chunks);
  }
  get bytes(): number {
    const segments = this.#segments.reduce((sum, segment) => sum + segmentBytes(segment), 0);
    return segments + this.vocabulary.bytes + this.#sources.length * SOURCE_BYTES;
  }

  /** Whether so many sources came and went that it should be built anew. */
  get isWorn(): boolean {
    return this.#sources.length > WORN_SOURCES_MIN && this.#sources.length > 4 * this.#slotOf.size;
  }

  /** In how many chunks the term is. */
  frequency(termId: number): number {
    return this.#frequencies[termId] ?? 0;
  }

  source(slot: number): IndexedSource {
    return this.#sources[slot] as IndexedSource;
  }

  /** A source that is there, by its id. */
  sourceOf(sourceId: string): IndexedSource | undefined {
    const slot = this.#slotOf.get(sourceId);
    return slot === undefined ? undefined : this.source(slot);
  }

  /** The sources that are there. */
  *sources(): Iterable<IndexedSource> {
    for (const slot of this.#slotOf.values()) yield this.source(slot);
  }

  /** For each source whether a query considers it. @param only the sources to consider; all without */
  considered(only?: ReadonlySet<string>): Uint8Array {
    if (!only) return this.#isAlive;
    return this.#isAlive.map((alive, slot) => (alive && only.has(this.source(slot).sourceId) ? 1 : 0));
  }

  /** Adds sources with their chunks, as one step. A source that is there already must have been dropped. */
  add(sources: readonly { source: IndexedSource; chunks: readonly NewChunk[] }[]): void {
    const added = sources.flatMap(({ source, chunks }) => {
      const slot = this.#sources.push(source) - 1;
      this.#slotOf.set(source.sourceId, slot);
      if (slot >= this.#isAlive.length) this.#isAlive = grown(this.#isAlive, slot);
      this.#isAlive[slot] = 1;
      return chunks.map((chunk) => ({ ...chunk, slot }));
    });
    if (added.length === 0) return;
    const segment = buildSegment(added, this.vocabulary, this.floats);
    if (this.vocabulary.size > this.#frequencies.length)
      this.#frequencies = grown(this.#frequencies, this.vocabulary.size);
    for (let index = 0; index < segment.count; index++) this.#count(segment, index, 1);
    this.#segments = [...this.#segments, segment];
    const small = this.#segments.filter(({ count }) => count < SMALL_CHUNKS);
    if (small.length > SMALL_SEGMENTS_MAX) this.#merge(small);
  }

  /** Removes sources with their chunks; unknown ones are ignored. */
  drop(sourceIds: Iterable<string>): void {
    const gone = new Set<number>();
    for (const sourceId of sourceIds) {
      const slot = this.#slotOf.get(sourceId);
      if (slot === undefined) continue;
      this.#slotOf.delete(sourceId);
      gone.add(slot);
    }
    if (gone.size === 0) return;
    for (const segment of this.#segments)
      for (let index = 0; index < segment.count; index++)
        if (gone.has(segment.slots[index] as number)) this.#count(segment, index, -1);
    for (const slot of gone) this.#isAlive[slot] = 0;
    if (this.#deadChunks > DEAD_SHARE_MAX * (this.#chunks + this.#deadChunks)) this.#merge(this.#segments);
  }

  #count(segment: Segment, index: number, sign: 1 | -1): void {
    for (let at = segment.starts[index] as number; at < (segment.starts[index + 1] as number); at++) {
      const termId = segment.termIds[at] as number;
      this.#frequencies[termId] = (this.#frequencies[termId] as number) + sign;
    }
    this.#chunks += sign;
    if (sign < 0) this.#deadChunks += 1;
    this.#terms += sign * (segment.lengths[index] as number);
  }

  #merge(segments: readonly Segment[]): void {
    const merged = mergeSegments(segments, this.#isAlive, this.floats);
    const before = segments.reduce((sum, { count }) => sum + count, 0);
    this.#deadChunks -= before - merged.count;
    const replaced = new Set(segments);
    const kept = this.#segments.filter((segment) => !replaced.has(segment));
    this.#segments = merged.count > 0 ? [...kept, merged] : kept;
  }
}

function grown<T extends Uint8Array | Uint32Array>(array: T, needed: number): T {
  const larger = new (array.constructor as new (length: number) => T)(Math.max(needed + 1, array.length * 2));
  larger.set(array);
  return larger;
}
