/** How fast documents are taken in, beside the embedder alone with the same chunks. */
import { setTimeout as delay } from 'node:timers/promises';
import { readPassages } from './quality-set.mjs';

const DOCUMENTS = 90;
const PASSAGES_PER_DOCUMENT = 60;
const POLL_MS = 50;

/** Documents of some 10 KB, all different. @param run different ones for each */
export function documents(run = 0) {
  const passages = readPassages();
  return Array.from({ length: DOCUMENTS }, (_, at) => {
    const document = run * DOCUMENTS + at;
    const parts = Array.from({ length: PASSAGES_PER_DOCUMENT }, (__, n) => {
      const { heading, text } = passages[(document * 37 + n * 11) % passages.length];
      return `## ${heading} ${document}.${n}\n\n${text}\n`;
    });
    return { title: `Document ${document}`, content: parts.join('\n'), content_type: 'text/markdown' };
  });
}

/**
 * @param platform with the embedder that is given
 * @param {import('pg').Client} client the owner of the tables
 */
export async function measureIngest({ platform, client, embedder, progress }) {
  const warm = { namespace: 'bench-warm', documents: documents().slice(0, 2) };
  await platform.post('/knowledge_base/new', { namespace: warm.namespace });
  await ingestAll(platform, warm);
  progress(`taking in ${DOCUMENTS} documents`);
  await platform.post('/knowledge_base/new', { namespace: 'bench-ingest' });
  const ms = await ingestAll(platform, { namespace: 'bench-ingest', documents: documents() });
  const { rows } = await client.query(
    `SELECT concat_ws(E'\\n', s.title, nullif(array_to_string(c.heading_path, ' > '), ''), c.text) AS text
    FROM knowledge_chunks c JOIN knowledge_sources s USING (tenant_id, namespace, source_id) WHERE namespace = 'bench-ingest'`,
  );
  const texts = rows.map(({ text }) => text);
  progress(`embedding ${texts.length} chunks`);
  const signal = AbortSignal.timeout(600_000);
  await embedder.embed(texts.slice(0, 20), signal);
  const from = performance.now();
  await embedder.embed(texts, signal);
  const bareMs = performance.now() - from;
  const perSecond = (texts.length / ms) * 1_000;
  const barePerSecond = (texts.length / bareMs) * 1_000;
  return { chunks: texts.length, perSecond, barePerSecond, ratio: perSecond / barePerSecond };
}

/** @returns milliseconds until the job is over */
export async function ingestAll(platform, { namespace, documents: given }) {
  const from = performance.now();
  let job = await platform.post('/knowledge_base/ingest', { namespace, documents: given });
  while (job.status === 'processing') {
    await delay(POLL_MS);
    job = await platform.post('/knowledge_base/get_status', { job_id: job.job_id });
  }
  if (job.status !== 'completed') throw new Error(`the job ended as ${job.status}: ${JSON.stringify(job)}`);
  return performance.now() - from;
}
