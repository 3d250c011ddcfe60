/** What `/send` feels of searches and of ingests in the same process. */
import { Caller } from '../harness/caller.mjs';
import { joinAgents } from '../harness/harness.mjs';
import { fillBase } from './fill.mjs';
import { documents, ingestAll } from './ingest-rate.mjs';
import { readPassages } from './quality-set.mjs';

const PAUSE_MS = 10;
/** Documents of a call. */
const INGESTED = 30;
/** The most that a document may have. */
const LARGE_BYTES = 10 * 1024 * 1024;

/** Calls of `/send` one after the other until it is over. @returns their times in milliseconds */
async function sendUntil(isOver, send) {
  const times = [];
  while (!isOver()) {
    const from = performance.now();
    await send();
    times.push(performance.now() - from);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return times;
}

function sendFor(seconds, send) {
  const until = performance.now() + seconds * 1_000;
  return sendUntil(() => performance.now() >= until, send);
}

/** Runs `work` again and again until `beside` is over. @returns how often, and what `beside` gave */
async function during(work, beside) {
  let count = 0;
  let isOver = false;
  const repeating = (async () => {
    while (!isOver) {
      await work();
      count += 1;
    }
  })();
  const result = await beside();
  isOver = true;
  await repeating;
  return { count, result };
}

/** A document of ten megabytes, without headings, each of which would begin a chunk. */
function largeDocument() {
  const passages = readPassages();
  const parts = [];
  let bytes = 0;
  for (;;) {
    const part = `${parts.length}. ${passages[parts.length % passages.length].text}\n\n`;
    bytes += Buffer.byteLength(part);
    if (bytes > LARGE_BYTES) return { title: 'Large', content: parts.join(''), content_type: 'text/plain' };
    parts.push(part);
  }
}

async function besideLargeDocument(platform, send) {
  const namespace = 'bench-beside-large';
  await platform.post('/knowledge_base/new', { namespace });
  let isOver = false;
  const taking = ingestAll(platform, { namespace, documents: [largeDocument()] }).finally(() => {
    isOver = true;
  });
  const [times, ms] = await Promise.all([sendUntil(() => isOver, send), taking]);
  return { times, seconds: ms / 1_000 };
}

/**
 * `/send` alone, beside searches one after the other in a base of so many chunks, and beside ingests that do not end, of small documents and of a large one.
 * @returns {Promise<{ what: string, times: number[] }[]>} times of calls in milliseconds
 */
export async function measureBeside({ harness, platform, client, chunks, seconds, progress }) {
  const namespace = 'bench-beside';
  await fillBase(client, { tenantId: platform.dev.tenant_id, namespace, chunks, model: 'all-MiniLM-L6-v2-int8' });
  await joinAgents(platform, await harness.agents(platform));
  const send = new Caller(platform.dev.base_url, platform.token).send('echo');
  const query = () => platform.post('/knowledge_base/query', { namespace, query: 'w1 w2 w3', min_score: 0 });
  const measure = () => sendFor(seconds, send);
  await sendFor(2, send);
  await query();
  const alone = await measure();
  const searches = await during(query, measure);
  const taken = 'bench-beside-ingest';
  await platform.post('/knowledge_base/new', { namespace: taken });
  let runs = 1; // others than those of the rate of taking in
  const ingest = () => ingestAll(platform, { namespace: taken, documents: documents(runs++).slice(0, INGESTED) });
  await ingest();
  const ingests = await during(ingest, measure);
  progress('/send beside the ingest of a document of 10 MiB');
  const large = await besideLargeDocument(platform, send);
  return [
    { what: 'alone', times: alone },
    { what: `beside ${searches.count} searches of ${chunks} chunks`, times: searches.result },
    { what: `beside an ingest of ${ingests.count * INGESTED} documents`, times: ingests.result },
    { what: `beside the ingest of a document of 10 MiB, in ${large.seconds.toFixed(0)} s`, times: large.times },
  ];
}
