import type { Tx } from '../../db/pool.js';

/**
 * Tables that keep rows of a tenant that is erased: the audit trail, which keeps who, when, the digest and what came of it, and the reports of
 * erasures. The tenant's own row goes last.
 */
export const KEPT_TABLES: readonly string[] = ['input_decisions', 'decision_outcomes', 'erasures', 'tenants'];

/** A table without an index by tenant, which every message would pay for: its rows are found by the tenant's messages and go with them. */
export const FOUND_BY_MESSAGE = 'idempotency_keys';

/** A table with rows of tenants. */
export interface TenantTable {
  name: string;
  /** The id of the tenant $1 as the table has it: whole, or its UUID alone. */
  tenant: '$1' | 'uuid_of($1)';
}

/** A table with the tables that refer to it. */
interface ReferencedTable {
  name: string;
  referenced_by: string[];
}

/** Every table with a `tenant_id`, read from the catalogue, so that a new table cannot be forgotten. Archives that operators detached are left out. */
const CATALOGUE = `
  SELECT c.relname AS name, CASE a.atttypid WHEN 'uuid'::regtype THEN 'uuid_of($1)' ELSE '$1' END AS tenant,
         coalesce(array_agg(DISTINCT f.relname::text) FILTER (WHERE f.relname <> c.relname), '{}') AS referenced_by
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
    LEFT JOIN pg_constraint k ON k.confrelid = c.oid AND k.contype = 'f'
    LEFT JOIN pg_class f ON f.oid = k.conrelid AND NOT f.relispartition
   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relrowsecurity
     AND c.relname <> ALL ($1) GROUP BY c.relname, a.atttypid ORDER BY c.relname`;

/** Orders tables so that each comes after those that refer to it. @throws Error where they refer to each other in a circle */
export function childrenFirst<Table extends ReferencedTable>(tables: readonly Table[]): Table[] {
  const order: Table[] = [];
  const left = new Map(tables.map((table) => [table.name, table]));
  while (left.size > 0) {
    const free = [...left.values()].filter(({ referenced_by: children }) => !children.some((child) => left.has(child)));
    if (free.length === 0) throw new Error(`tables refer to each other in a circle: ${[...left.keys()].join()}`);
    for (const table of free) {
      order.push(table);
      left.delete(table.name);
    }
  }
  return order;
}

/** The tables from which a tenant is erased, in their order. */
export async function tenantTables(tx: Tx): Promise<TenantTable[]> {
  const tables = await tx.query<TenantTable & ReferencedTable>(CATALOGUE, [KEPT_TABLES]);
  return childrenFirst(tables).map(({ name, tenant }) => ({ name, tenant }));
}
