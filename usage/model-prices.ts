import { type Author, recordAudit } from '../audit/record-audit.js';
import type { ModelPrice, SetPricesRequest } from '../contracts/api/tenants/tenants.js';
import { LIMITS } from '../contracts/limits.js';
import type { Db, Tx } from '../db/pool.js';
import { PlatformError } from '../runtime/errors.js';

const LIST = `
  SELECT model, input_per_million::double precision AS input_per_million, output_per_million::double precision AS output_per_million
    FROM model_prices WHERE tenant_id = $1 ORDER BY model`;
const SET = `
  INSERT INTO model_prices (tenant_id, model, input_per_million, output_per_million, updated_by) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (tenant_id, model) DO UPDATE SET input_per_million = excluded.input_per_million,
    output_per_million = excluded.output_per_million, updated_at = now(), updated_by = excluded.updated_by`;
const DELETE = 'DELETE FROM model_prices WHERE tenant_id = $1 AND model = $2';

function listPrices(tx: Tx, tenantId: string): Promise<ModelPrice[]> {
  return tx.query<ModelPrice>(LIST, [tenantId]);
}

/** The prices of a tenant, by the names of their models. */
export function getPrices(db: Db, tenantId: string): Promise<ModelPrice[]> {
  return db.tenant(tenantId, (tx) => listPrices(tx, tenantId));
}

/**
 * Sets or removes the price of a model. What has been added up keeps its cost.
 * @returns all prices of the tenant
 * @throws PlatformError CONFLICT at the bound of prices
 */
export async function setPrice(db: Db, author: Author, price: SetPricesRequest): Promise<ModelPrice[]> {
  const { tenant_id: tenantId, principal } = author;
  const { model, input_per_million, output_per_million } = price;
  return db.tenant(tenantId, async (tx) => {
    const priceOf = (prices: ModelPrice[]) => prices.find((one) => one.model === model) ?? null;
    const before = priceOf(await listPrices(tx, tenantId));
    if (input_per_million === null) await tx.query(DELETE, [tenantId, model]);
    else await tx.query(SET, [tenantId, model, input_per_million, output_per_million, principal.id]);
    const prices = await listPrices(tx, tenantId);
    const states = { before, after: priceOf(prices) };
    await recordAudit(tx, author, { action: 'price.set', target: { type: 'model', id: model }, ...states });
    if (prices.length > LIMITS.modelPricesPerTenant)
      throw new PlatformError('CONFLICT', `A tenant has at most ${LIMITS.modelPricesPerTenant} prices. Remove one.`);
    return prices;
  });
}
