import type { NamespaceIndex } from '../index/namespace-index.js';
import { countChunks, countConsidered, type Segment } from '../index/segment.js';
import type { DatabaseVectors, NearChunk, VectorScope } from './database-vectors.js';
import { describeChunks, type IndexQuery, type Ranked, termsFor } from './rank.js';
import { hybridBound, isEnough, scoreOf } from './ranking.js';
import { TopList } from './top-list.js';
import { scanWords } from './word-scan.js';

/** Chunks that are asked for by their vectors: so many times the results, and at least so many. */
const NEAREST_FACTOR = 4;
const NEAREST_MIN = 200;

const chunkKey = (sourceId: string, version: number, ordinal: number): string => `${ordinal} ${version} ${sourceId}`;

/** Which chunk stands where in the order of the segments. */
interface Places {
  slots: Uint32Array;
  ordinals: Uint32Array;
  hasVector: Uint8Array;
}

function placesOf(segments: readonly Segment[]): Places {
  const count = countChunks(segments);
  const places = { slots: new Uint32Array(count), ordinals: new Uint32Array(count), hasVector: new Uint8Array(count) };
  let at = 0;
  for (const segment of segments) {
    for (const name of ['slots', 'ordinals', 'hasVector'] as const) places[name].set(segment[name], at);
    at += segment.count;
  }
  return places;
}

/** Writes cosines to the places of their chunks. */
function spread(
  index: NamespaceIndex,
  places: Places,
  considered: Uint8Array,
  near: NearChunk[],
  cosines: Float32Array,
): void {
  const found = new Map(near.map((chunk) => [chunkKey(chunk.source_id, chunk.version, chunk.ordinal), chunk.cosine]));
  const sources = new Set(near.map((chunk) => chunk.source_id));
  const isWanted = considered.map((used, slot) => (used && sources.has(index.source(slot).sourceId) ? 1 : 0));
  for (let item = 0; item < cosines.length; item++) {
    const slot = places.slots[item] as number;
    if (!isWanted[slot]) continue;
    const { sourceId, version } = index.source(slot);
    const cosine = found.get(chunkKey(sourceId, version, places.ordinals[item] as number));
    if (cosine !== undefined) cosines[item] = cosine;
  }
}

/**
 * Finds the best chunks of an index whose vectors are in the database, as `rankAll` would. In hybrid mode the nearest chunks give the score
 * that another chunk must beat; of all others only those are asked for whose words could lift them above it. `total` counts the chunks that
 * were looked at.
 */
export async function rankWithDatabase(
  index: NamespaceIndex,
  query: IndexQuery & { vector: Float32Array },
  vectors: DatabaseVectors,
  scope: VectorScope,
): Promise<Ranked> {
  const { segments } = index;
  const considered = index.considered(query.only).slice();
  const places = placesOf(segments);
  const cosines = new Float32Array(places.slots.length).fill(Number.NaN);
  const words = await scanWords(index, segments, considered, termsFor(query));
  const wanted = Math.max(NEAREST_MIN, query.limit * NEAREST_FACTOR);
  const near = await vectors.nearest(scope, query.vector, wanted);
  spread(index, places, considered, near, cosines);
  const score = (item: number): number | undefined => {
    const cosine = cosines[item] as number;
    if (Number.isNaN(cosine) && places.hasVector[item]) return undefined; // it is not among the nearest
    if (!considered[places.slots[item] as number]) return undefined;
    return scoreOf(query.mode, {
      cosine: Number.isNaN(cosine) ? undefined : cosine,
      lexical: words.lexical[item] as number,
      coverage: words.coverage[item] as number,
    });
  };
  if (query.mode === 'hybrid' && near.length === wanted) {
    const least = Math.max(
      query.minScore || Number.NEGATIVE_INFINITY,
      bestOf(cosines.length, query.limit, score).best.threshold,
    );
    const farthest = near.at(-1)?.cosine ?? 0;
    const missing: number[] = [];
    for (let item = 0; item < cosines.length; item++) {
      const coverage = words.coverage[item] as number;
      const isUnknown = Number.isNaN(cosines[item] as number) && places.hasVector[item] && coverage > 0;
      if (isUnknown && hybridBound(farthest, coverage) >= least) missing.push(item);
    }
    const asked = missing.map((item) => ({
      sourceId: index.source(places.slots[item] as number).sourceId,
      ordinal: places.ordinals[item] as number,
    }));
    if (asked.length > 0) spread(index, places, considered, await vectors.cosines(scope, query.vector, asked), cosines);
  }
  const { best, total } = bestOf(cosines.length, query.limit, (item) => atLeast(score(item), query.minScore));
  const candidates = describeChunks(index, segments, { words, cosines }, best.sorted());
  return { candidates, total, ...countConsidered(segments, considered) };
}

function atLeast(score: number | undefined, least: number): number | undefined {
  return score !== undefined && isEnough(score, least) ? score : undefined;
}

function bestOf(
  count: number,
  limit: number,
  score: (item: number) => number | undefined,
): { best: TopList; total: number } {
  const best = new TopList(limit);
  let total = 0;
  for (let item = 0; item < count; item++) {
    const value = score(item);
    if (value === undefined) continue;
    total += 1;
    best.add(item, value);
  }
  return { best, total };
}
