import type { Caller } from '../contracts/api/auth.js';
import { KnowledgeBase } from '../contracts/api/knowledge/knowledge.js';
import { actsAs } from '../contracts/permissions.js';
import { scopeIncludes } from '../contracts/primitives.js';
import { queryJson } from '../db/json-rows.js';
import type { Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';

/** Who reads or changes knowledge bases. */
export interface KnowledgeReader {
  tenantId: string;
  /** Reaches the private bases that it made; null for an agent's tool call. */
  credentialId: string | null;
  /** Reaches all private bases of the tenant. */
  full: boolean;
}

/** What a token may reach. One that acts as an agent has no other rights than the tenant's agents, whatever its scopes. */
export function readerOf(caller: Caller): KnowledgeReader {
  const isAgent = actsAs(caller) !== null;
  return {
    tenantId: caller.tenant_id,
    credentialId: isAgent ? null : caller.credential_id,
    full: !isAgent && scopeIncludes(caller.scopes, 'full'),
  };
}

/** What an agent's tool call may reach: the bases of its tenant that are not private. */
export function readerOfAgent(tenantId: string): KnowledgeReader {
  return { tenantId, credentialId: null, full: false };
}

/** A row of `knowledge_bases`. */
export interface BaseRow extends KnowledgeBase {
  created_by: string;
  revision: number;
  last_ingested_at: string | null;
}

export const BASE_COLUMNS = `namespace, display_name, description, visibility, config, created_by, revision, last_ingested_at, created_at,
  updated_at`;

/** The condition on rows of `knowledge_bases` that a reader may see. $1: tenant, $2: `full`, $3: credential. */
export const VISIBLE = `tenant_id = $1 AND deleted_at IS NULL AND (visibility = 'tenant' OR $2 OR created_by = $3)`;

/** The values of `VISIBLE`. */
export function visibleTo({ tenantId, full, credentialId }: KnowledgeReader): unknown[] {
  return [tenantId, full, credentialId];
}

/** A base as answers show it. */
export function shownBase(row: BaseRow): KnowledgeBase {
  return KnowledgeBase.parse(row);
}

function noBase(namespace: string): PlatformError {
  return new PlatformError('NOT_FOUND', `There is no knowledge base ${namespace}.`);
}

/**
 * The bases of these namespaces, in their order.
 * @throws PlatformError NOT_FOUND for one that is not there, or that the reader may not see
 */
export async function requireBases(tx: Tx, reader: KnowledgeReader, namespaces: readonly string[]): Promise<BaseRow[]> {
  const select = `SELECT ${BASE_COLUMNS} FROM knowledge_bases WHERE ${VISIBLE} AND namespace = ANY ($4)`;
  const rows = await queryJson<BaseRow>(tx, select, [...visibleTo(reader), namespaces]);
  return namespaces.map((namespace) => {
    const found = rows.find((row) => row.namespace === namespace);
    if (!found) throw noBase(namespace);
    return found;
  });
}

/** @throws PlatformError NOT_FOUND */
export async function requireBase(tx: Tx, reader: KnowledgeReader, namespace: string): Promise<BaseRow> {
  const [base] = await requireBases(tx, reader, [namespace]);
  if (!base) throw noBase(namespace);
  return base;
}
