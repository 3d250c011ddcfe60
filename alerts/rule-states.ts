import type { Tx } from '../db/pool.js';
import { hasState, type RuleState, type Threshold } from './thresholds.js';

const STATES = `
  SELECT s.tenant_id, s.rule_id, s.counted_ms, s.fired_ms FROM alert_states s
    JOIN jsonb_to_recordset($1) AS r (tenant_id text, rule_id text) USING (tenant_id, rule_id)`;
const SAVE_STATES = `
  INSERT INTO alert_states (tenant_id, rule_id, counted_ms, fired_ms)
    SELECT * FROM jsonb_to_recordset($1) AS s (tenant_id text, rule_id text, counted_ms jsonb, fired_ms bigint)
    ON CONFLICT (tenant_id, rule_id) DO UPDATE SET counted_ms = excluded.counted_ms, fired_ms = excluded.fired_ms`;

interface RuleRef {
  tenant_id: string;
  rule_id: string;
}

/** The key of a rule in a map of states. */
export const stateKeyOf = ({ tenant_id, rule_id }: RuleRef) => `${tenant_id} ${rule_id}`;

/** The states of those of these rules that have one. */
export async function readStates(tx: Tx, rules: (RuleRef & Threshold)[]): Promise<Map<string, RuleState>> {
  const counting = new Map(rules.filter(hasState).map((rule) => [stateKeyOf(rule), rule]));
  if (counting.size === 0) return new Map();
  const wanted = [...counting.values()].map(({ tenant_id, rule_id }) => ({ tenant_id, rule_id }));
  const rows = await tx.query<RuleState & RuleRef>(STATES, [JSON.stringify(wanted)]);
  const stored = new Map(rows.map(({ counted_ms, fired_ms, ...rule }) => [stateKeyOf(rule), { counted_ms, fired_ms }]));
  return new Map([...counting.keys()].map((key) => [key, stored.get(key) ?? { counted_ms: [], fired_ms: null }]));
}

/** Stores the states that have changed. */
export async function saveStates(
  tx: Tx,
  before: ReadonlyMap<string, RuleState>,
  after: ReadonlyMap<string, RuleState>,
): Promise<void> {
  const changed = [...after].filter(([key, state]) => JSON.stringify(state) !== JSON.stringify(before.get(key)));
  if (changed.length === 0) return;
  const rows = changed.map(([key, state]) => {
    const [tenant_id, rule_id] = key.split(' ');
    return { tenant_id, rule_id, ...state };
  });
  await tx.query(SAVE_STATES, [JSON.stringify(rows)]);
}
