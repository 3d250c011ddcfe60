import type { Db } from '../../../db/pool.js';
import { searchedText } from '../../embedder.js';
import { type ChunkRow, readChunks, readSources, type SeenState, type SourceRow } from './index-rows.js';
import { type IndexedSource, NamespaceIndex, type NewChunk } from './namespace-index.js';
import { termsOf } from './terms.js';

/** Chunks that are read in one transaction: some 2 MB. A larger source is read as a whole. */
const CHUNKS_PER_READ = 1_000;

/** A knowledge base that is being, or was, loaded. */
export interface LoadedIndex {
  index: NamespaceIndex;
  /** The state whose sources it has; undefined before the first load, and for a base that does not exist. */
  seen: SeenState | undefined;
}

/** How much a load reads. */
export interface LoadSize {
  /** Chunks that are to be read, and those of the whole base. */
  missing: number;
  chunks: number;
  /** Floats that the index keeps of each. */
  dimensions: number;
}

export interface LoaderOptions {
  db: Pick<Db, 'tenant'>;
  /** The embedder's; null without. Vectors of other models are not loaded. */
  model: string | null;
  /** Vectors stay in the database when false. */
  keepsVectors: boolean;
  /** Told of sources that were read with their vectors, before they are searched. */
  onVectors?: (tenantId: string, namespace: string, chunks: readonly ChunkRow[]) => Promise<void>;
  /** Runs a load in its turn. @throws when it is refused */
  inTurn: (tenantId: string, size: LoadSize, load: () => Promise<void>) => Promise<void>;
  /** Called as an index grows. @throws to end the load */
  onGrowth: (index: NamespaceIndex) => void;
}

/** Little-endian floats, as `knowledge_chunks.embedding` holds them. */
function toVector(embedding: Buffer): Float32Array {
  const aligned = new Uint8Array(embedding); // a copy: the row's own bytes lie anywhere in a larger buffer
  return new Float32Array(aligned.buffer);
}

/** @param dimensions of vectors that count; others are of a model that changed under its name, and as good as none */
function toChunk(row: ChunkRow, dimensions: number): NewChunk {
  const vector = row.embedding ? toVector(row.embedding) : undefined;
  return {
    ordinal: row.ordinal,
    terms: termsOf(searchedText(row.title, row.heading_path, row.text)),
    vector: vector?.length === dimensions ? vector : undefined,
  };
}

/** Parts of a list of sources whose chunks are read together. */
function parts(sources: readonly SourceRow[]): SourceRow[][] {
  const result: SourceRow[][] = [];
  let chunks = 0;
  for (const source of sources) {
    const last = result.at(-1);
    chunks += source.chunk_count;
    if (last && chunks <= CHUNKS_PER_READ) last.push(source);
    else {
      result.push([source]);
      chunks = source.chunk_count;
    }
  }
  return result;
}

const countChunks = (sources: readonly SourceRow[]): number =>
  sources.reduce((sum, { chunk_count }) => sum + chunk_count, 0);

/** By which a source is known to have other chunks or vectors than those that were loaded. */
const contentKey = ({ version, model }: Pick<SourceRow, 'version' | 'model'>): string => `${version} ${model ?? ''}`;

/** Drops all sources from an index but these. */
function dropOthers(index: NamespaceIndex, sources: readonly SourceRow[]): void {
  const present = new Set(sources.map(({ source_id }) => source_id));
  index.drop([...index.sources()].map(({ sourceId }) => sourceId).filter((sourceId) => !present.has(sourceId)));
}

/** Loads knowledge bases into memory, and brings them up to date by the sources that changed. */
export class IndexLoader {
  constructor(private readonly options: LoaderOptions) {}

  /** Whether an index knows the vectors that a query needs. @param dimensions 0 when it needs none */
  fits(index: NamespaceIndex, dimensions: number): boolean {
    return dimensions === 0 || index.dimensions === dimensions;
  }

  /**
   * Brings an index to the present revision. When a source changes meanwhile, the index has its newer chunks or none of them; the revision
   * differs then, so that the next query loads again.
   * @param dimensions of the present model's vectors; 0 when they are not needed
   */
  async refresh(tenantId: string, namespace: string, loaded: LoadedIndex, dimensions: number): Promise<void> {
    const isKept = this.fits(loaded.index, dimensions) && !loaded.index.isWorn;
    const seen = isKept ? loaded.seen : undefined;
    const now = await this.options.db.tenant(tenantId, (tx) => readSources(tx, tenantId, namespace, seen));
    const index = isKept ? loaded.index : new NamespaceIndex(dimensions, this.options.keepsVectors);
    // At once: the one before is of no use any more, and this one's memory counts as it grows.
    loaded.index = index;
    loaded.seen = undefined;
    const sources = now?.sources ?? [];
    if (!now || now.isWhole) dropOthers(index, sources);
    const missing = sources.filter((source) => {
      const known = index.sourceOf(source.source_id);
      return !known || contentKey(known) !== contentKey(source);
    });
    const size = {
      missing: countChunks(missing),
      // A source that changed counts twice, which is near enough.
      chunks: now?.isWhole ? countChunks(sources) : index.chunks + countChunks(missing),
      dimensions: index.floats,
    };
    await this.options.inTurn(tenantId, size, async () => {
      for (const part of parts(missing)) await this.#load(tenantId, namespace, index, part);
    });
    loaded.seen = now && { revision: now.revision, deletions: now.deletions };
  }

  async #load(tenantId: string, namespace: string, index: NamespaceIndex, sources: SourceRow[]): Promise<void> {
    const { db, model, onVectors, onGrowth } = this.options;
    const ids = sources.map(({ source_id }) => source_id);
    const rows = await db.tenant(tenantId, (tx) => readChunks(tx, tenantId, namespace, ids, model));
    await onVectors?.(tenantId, namespace, rows);
    const bySource = new Map<string, { source: IndexedSource; chunks: NewChunk[] }>();
    // A source without chunks is there too, as it was listed: else it would be read with each query.
    for (const { source_id: sourceId, version, model: own, chunk_count } of sources)
      if (chunk_count === 0) bySource.set(sourceId, { source: { sourceId, version, model: own }, chunks: [] });
    for (const row of rows) {
      const { source_id: sourceId, version, model: own } = row;
      const entry = bySource.get(sourceId) ?? { source: { sourceId, version, model: own }, chunks: [] };
      bySource.set(sourceId, entry);
      entry.chunks.push(toChunk(row, index.dimensions));
    }
    index.drop(ids); // in one step with their new versions: a query has the one or the other
    index.add([...bySource.values()]);
    onGrowth(index);
  }
}
