import { createHash } from 'node:crypto';
import {
  KnowledgeConfig,
  type NewKnowledgeBaseRequest,
  type UpdateKnowledgeBaseRequest,
} from '../contracts/api/knowledge/knowledge.js';
import { LIMITS } from '../contracts/limits.js';
import { queryJson } from '../db/json-rows.js';
import { type Page, type PageRequest, readPage } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';
import { BASE_COLUMNS, type BaseRow, type KnowledgeReader, requireBase, VISIBLE, visibleTo } from './base-access.js';

/** @throws PlatformError BAD_REQUEST when chunks would repeat more than they add */
function checkConfig(config: KnowledgeConfig): KnowledgeConfig {
  if (config.chunk_overlap * 2 < config.chunk_tokens) return config;
  throw new PlatformError('BAD_REQUEST', 'config.chunk_overlap: must be less than half of chunk_tokens');
}

/** What a call that creates a base has beside the base's fields: a repeat under its key finds the base. */
interface Creation {
  idempotencyKey: string | undefined;
  /** The fingerprint of its documents. */
  documents: string;
}

/** A digest of what a call asks for: a repeat under the same key must ask for the same. */
function fingerprintOf(request: NewKnowledgeBaseRequest, documents: string): string {
  const { display_name, description, visibility, config } = request;
  const asked = [display_name, description, visibility, config, documents];
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex');
}

/**
 * The base that a call under the same key created, unless the caller may not see it.
 * @throws PlatformError IDEMPOTENCY_MISMATCH when that call asked for something else
 */
async function repeatedBase(
  tx: Tx,
  reader: KnowledgeReader,
  request: NewKnowledgeBaseRequest,
  { idempotencyKey, documents }: Creation,
): Promise<BaseRow | undefined> {
  if (idempotencyKey === undefined) return undefined;
  const select = `
    SELECT ${BASE_COLUMNS}, fingerprint FROM knowledge_bases WHERE ${VISIBLE} AND namespace = $4 AND idempotency_key = $5`;
  const values = [...visibleTo(reader), request.namespace, idempotencyKey];
  const [found] = await queryJson<BaseRow & { fingerprint: string }>(tx, select, values);
  if (!found || found.fingerprint === fingerprintOf(request, documents)) return found;
  throw new PlatformError('IDEMPOTENCY_MISMATCH', 'The idempotency_key was used for another knowledge base.');
}

/**
 * Writes a new knowledge base.
 * @returns `repeated` for a key whose base is there already, which is left as it is
 * @throws PlatformError CONFLICT when the namespace is taken, also by a base that the caller may not see; IDEMPOTENCY_MISMATCH;
 *   SERVICE_UNAVAILABLE while one of that name is being deleted
 */
export async function insertBase(
  tx: Tx,
  creator: KnowledgeReader & { name: string },
  request: NewKnowledgeBaseRequest,
  creation: Creation,
): Promise<{ row: BaseRow; repeated: boolean }> {
  const { tenantId } = creator;
  const { namespace, display_name = namespace, description = '', visibility = 'tenant' } = request;
  const before = await repeatedBase(tx, creator, request, creation);
  if (before) return { row: before, repeated: true };
  const config = checkConfig(KnowledgeConfig.parse(request.config ?? {}));
  const [count] = await tx.query<{ count: number }>(
    'SELECT count(*) AS count FROM knowledge_bases WHERE tenant_id = $1',
    [tenantId],
  );
  if ((count?.count ?? 0) >= LIMITS.knowledgeBasesPerTenant) {
    throw new PlatformError('CONFLICT', `A tenant may have ${LIMITS.knowledgeBasesPerTenant} knowledge bases.`);
  }
  const insert = `
    INSERT INTO knowledge_bases (tenant_id, namespace, display_name, description, visibility, config, created_by, idempotency_key, fingerprint)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING ${BASE_COLUMNS}`;
  const values = [tenantId, namespace, display_name, description, visibility, config, creator.name];
  const repeat = [creation.idempotencyKey ?? null, fingerprintOf(request, creation.documents)];
  const [row] = await queryJson<BaseRow>(tx, insert, [...values, ...repeat]);
  if (row) return { row, repeated: false };
  // A call under the same key may have been quicker by a moment.
  const quicker = await repeatedBase(tx, creator, request, creation);
  if (quicker) return { row: quicker, repeated: true };
  const [deleted] = await tx.query(
    'SELECT 1 FROM knowledge_bases WHERE tenant_id = $1 AND namespace = $2 AND deleted_at IS NOT NULL',
    [tenantId, namespace],
  );
  if (deleted)
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      `The knowledge base ${namespace} is still being deleted. Try again in a minute.`,
    );
  throw new PlatformError('CONFLICT', `There is a knowledge base ${namespace} already.`);
}

/** The bases that a reader may see, newest first. */
export function listBases(db: Db, reader: KnowledgeReader, page: PageRequest): Promise<Page<BaseRow>> {
  const [tenantId, ...rest] = visibleTo(reader) as [string, ...unknown[]];
  const list = {
    key: 'namespace',
    from: `knowledge_bases WHERE ${VISIBLE}`,
    orderBy: 'created_at DESC, namespace DESC',
    values: [tenantId, ...rest] as [string, ...unknown[]],
    bounded: true,
  };
  return readPage(db, list, page, async (tx, keys) => {
    const select = `SELECT ${BASE_COLUMNS} FROM knowledge_bases WHERE tenant_id = $1 AND namespace = ANY ($2) AND deleted_at IS NULL`;
    const rows = await queryJson<BaseRow>(tx, `${select} ORDER BY created_at DESC, namespace DESC`, [tenantId, keys]);
    return rows;
  });
}

/**
 * Changes the given fields of a base that the reader may see.
 * @returns also whether the chunks of its sources are of other settings now
 * @throws PlatformError NOT_FOUND; BAD_REQUEST when chunks would repeat more than they add
 */
export async function updateBase(
  tx: Tx,
  reader: KnowledgeReader,
  request: UpdateKnowledgeBaseRequest,
): Promise<{ base: BaseRow; chunkingChanged: boolean }> {
  // What is merged with the stored fields must not be what another change has replaced meanwhile.
  const lock = `SELECT 1 FROM knowledge_bases WHERE ${VISIBLE} AND namespace = $4 FOR NO KEY UPDATE`;
  await tx.query(lock, [...visibleTo(reader), request.namespace]);
  const before = await requireBase(tx, reader, request.namespace);
  const config = checkConfig(KnowledgeConfig.parse({ ...before.config, ...request.config }));
  const { display_name, description, visibility } = { ...before, ...given(request) };
  const update = `
    UPDATE knowledge_bases SET display_name = $3, description = $4, visibility = $5, config = $6, updated_at = now()
     WHERE tenant_id = $1 AND namespace = $2 AND deleted_at IS NULL RETURNING ${BASE_COLUMNS}`;
  const values = [reader.tenantId, request.namespace, display_name, description, visibility, config];
  const [base] = await queryJson<BaseRow>(tx, update, values);
  if (!base) throw new PlatformError('NOT_FOUND', `There is no knowledge base ${request.namespace}.`);
  const { chunk_tokens, chunk_overlap } = before.config;
  const chunkingChanged = chunk_tokens !== config.chunk_tokens || chunk_overlap !== config.chunk_overlap;
  return { base, chunkingChanged };
}

const given = <Fields extends object>(fields: Fields): Partial<Fields> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>;
