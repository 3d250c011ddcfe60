/** Knowledge bases of any size, written by SQL: texts of words as rare as in a language, vectors in clusters as those of real texts. */

export const DIMENSIONS = 384;
const CHUNKS_PER_SOURCE = 20;
const CHUNKS_PER_INSERT = 1_000;
const WORDS_PER_CHUNK = 120;
const VOCABULARY = 30_000;
const CLUSTERS = 300;
/** How far a vector is from the middle of its cluster. */
const SPREAD = 0.06;

/** Numbers from 0 to 1, the same for the same seed. */
export function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const normal = (next) => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

function unit(values) {
  const length = Math.hypot(...values);
  return values.map((value) => value / length);
}

const centers = (() => {
  const next = random(7);
  return Array.from({ length: CLUSTERS }, () => unit(Float32Array.from({ length: DIMENSIONS }, () => normal(next))));
})();

/** A vector near the middle of a random cluster. */
export function vectorOf(next) {
  const center = centers[Math.floor(next() * CLUSTERS)];
  return unit(center.map((value) => value + SPREAD * normal(next)));
}

const wordOf = (rank) => `w${rank.toString(36)}`;

/** Words whose frequency falls with their rank. */
export function textOf(next, words = WORDS_PER_CHUNK) {
  return Array.from({ length: words }, () => wordOf(Math.floor(VOCABULARY ** next()))).join(' ');
}

const SOURCES = `
  INSERT INTO knowledge_sources (tenant_id, namespace, source_id, place, version, title, content_type, tags, content_hash, chunking, extracted,
    chunk_count, token_count, byte_count, model, dim)
  SELECT $1, $2, 's' || n, nextval('knowledge_order'), 0, 'Source ' || n, 'text/plain', CASE WHEN n % 100 = 0 THEN '{rare}'::text[] ELSE '{}' END,
    'hash', '', '', ${CHUNKS_PER_SOURCE}, 0, 0, $3, ${DIMENSIONS} FROM generate_series(0, $4::int - 1) AS n`;
const CHUNKS = `
  INSERT INTO knowledge_chunks (tenant_id, namespace, source_id, ordinal, chunk_id, text, char_start, char_end, tokens, embedding, dim, model)
  SELECT $1, $2, 's' || (n + $6::int - 1) / ${CHUNKS_PER_SOURCE}, (n + $6::int - 1) % ${CHUNKS_PER_SOURCE}, gen_random_uuid()::text, text, 0, 1, 200,
    embedding, ${DIMENSIONS}, $3
  FROM unnest($4::text[], $5::bytea[]) WITH ORDINALITY AS c (text, embedding, n)`;

/**
 * Writes a knowledge base of so many chunks; each hundredth source has the tag `rare`.
 * @param {import('pg').Client} client the owner of the tables
 * @returns {Promise<Float32Array[]>} the vectors, chunk by chunk
 */
export async function fillBase(client, { tenantId, namespace, chunks, model }) {
  await client.query(
    `INSERT INTO knowledge_bases (tenant_id, namespace, display_name, description, visibility, config, created_by)
    VALUES ($1, $2, $2, '', 'tenant', '{}', 'bench')`,
    [tenantId, namespace],
  );
  await client.query(SOURCES, [tenantId, namespace, model, Math.ceil(chunks / CHUNKS_PER_SOURCE)]);
  const next = random(chunks);
  const vectors = [];
  for (let from = 0; from < chunks; from += CHUNKS_PER_INSERT) {
    const part = Array.from({ length: Math.min(CHUNKS_PER_INSERT, chunks - from) }, () => vectorOf(next));
    const texts = part.map(() => textOf(next));
    await client.query(CHUNKS, [
      tenantId,
      namespace,
      model,
      texts,
      part.map(({ buffer }) => Buffer.from(buffer)),
      from,
    ]);
    vectors.push(...part);
  }
  await client.query('ANALYZE knowledge_chunks, knowledge_sources');
  return vectors;
}

/** Whether the chunk at this place belongs to a source with the tag `rare`. */
export const isRare = (place) => Math.floor(place / CHUNKS_PER_SOURCE) % 100 === 0;

/** The place of a result in the order in which the chunks were written. */
export const placeOf = (sourceId, ordinal) => Number(sourceId.slice(1)) * CHUNKS_PER_SOURCE + ordinal;
