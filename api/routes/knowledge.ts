import type { FastifyInstance } from 'fastify';
import type { Caller } from '../../contracts/api/auth.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { readerOf, shownBase } from '../../knowledge/base-access.js';
import type { KnowledgeWriter } from '../../knowledge/knowledge.js';
import type { ApiDeps } from '../deps.js';
import { largeBodySlots } from '../large-bodies.js';
import { mount, pageFields } from '../mount.js';

function writerOf(caller: Caller): KnowledgeWriter {
  return { ...readerOf(caller), name: caller.credential_id };
}

/** Knowledge bases: reading needs the scope `read`, changing `full`. */
export function knowledgeRoutes(app: FastifyInstance, { knowledge }: Pick<ApiDeps, 'knowledge'>): void {
  const large = { onRequest: largeBodySlots() };

  mount(app, OPERATIONS.newKnowledgeBase, large).answer(async (body, { caller }) => {
    const { row, job_id, status } = await knowledge.create(writerOf(caller), body);
    return { ok: true, knowledge_base: shownBase(row), job_id, status };
  });

  mount(app, OPERATIONS.getKnowledgeBases).answer(async (body, { caller }) => {
    const found = await knowledge.list(readerOf(caller), body);
    return { ...pageFields(body, found), knowledge_bases: found.rows.map(shownBase) };
  });

  mount(app, OPERATIONS.getKnowledgeBase).answer(async ({ namespace }, { caller }) => {
    return { ok: true, knowledge_base: shownBase(await knowledge.get(readerOf(caller), namespace)) };
  });

  mount(app, OPERATIONS.updateKnowledgeBase).answer(async (body, { caller }) => {
    const { base, chunkingChanged } = await knowledge.update(readerOf(caller), body);
    return { ok: true, knowledge_base: shownBase(base), ...(chunkingChanged && { refresh_required: true as const }) };
  });

  mount(app, OPERATIONS.deleteKnowledgeBase).answer(async ({ namespace }, { caller }) => {
    await knowledge.delete(readerOf(caller), namespace);
    return { ok: true };
  });

  mount(app, OPERATIONS.ingestDocuments, large).answer((body, { caller }) => knowledge.ingest(writerOf(caller), body));

  mount(app, OPERATIONS.queryKnowledge).answer(async (body, { caller }) => {
    return { ok: true, ...(await knowledge.query(readerOf(caller), body)) };
  });

  mount(app, OPERATIONS.refreshKnowledgeBase).answer(async (body, { caller }) => {
    const { job_id, status } = await knowledge.refresh(writerOf(caller), body);
    return { ok: true, job_id, status };
  });

  mount(app, OPERATIONS.getKnowledgeStats).answer(async ({ namespace }, { caller }) => {
    return { ok: true, stats: await knowledge.stats(readerOf(caller), namespace) };
  });

  mount(app, OPERATIONS.getKnowledgeSources).answer(async (body, { caller }) => {
    const found = await knowledge.sources(readerOf(caller), body);
    return { ...pageFields(body, found), sources: found.rows };
  });

  mount(app, OPERATIONS.deleteKnowledgeSource).answer(async ({ namespace, source_id }, { caller }) => {
    await knowledge.deleteSource(readerOf(caller), namespace, source_id);
    return { ok: true };
  });

  mount(app, OPERATIONS.getKnowledgeJobs).answer(async (body, { caller }) => {
    const found = await knowledge.jobs(readerOf(caller), body);
    return { ...pageFields(body, found), jobs: found.rows };
  });

  mount(app, OPERATIONS.getKnowledgeJob).answer(({ job_id }, { caller }) => knowledge.status(readerOf(caller), job_id));
}
