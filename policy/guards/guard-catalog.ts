import { type Author, recordAudit } from '../../audit/record-audit.js';
import {
  GUARD_CONFIGS,
  GUARD_DEFAULTS,
  Guard,
  GuardName,
  type UpdateGuardRequest,
} from '../../contracts/api/policies/guards.js';
import type { Db } from '../../db/pool.js';
import { beginPolicyChange } from '../policy-store.js';
import { type GuardRow, readGuards, saveGuard } from './guard-store.js';

/** A guard as answers show it: what the tenant has changed, and the defaults. */
function shownGuard(name: GuardName, row: GuardRow | undefined): Guard {
  const { enabled, decision } = row ?? GUARD_DEFAULTS[name];
  const config = GUARD_CONFIGS[name].parse(row?.config ?? {});
  const { updated_by = null } = row ?? {};
  const updated_at = row?.updated_at.toISOString() ?? null;
  return Guard.parse({ guard: name, enabled, decision, config, updated_at, updated_by });
}

/** The guards of tenants as they are configured, on Postgres. */
export class GuardCatalog {
  readonly #db: Db;
  readonly #changed: (tenantId: string) => void;

  /** @param changed called after a change was committed */
  constructor(db: Db, changed: (tenantId: string) => void) {
    this.#db = db;
    this.#changed = changed;
  }

  /** All guards of a tenant, those that it never changed included. */
  async list(tenantId: string): Promise<Guard[]> {
    const rows = await this.#db.tenant(tenantId, (tx) => readGuards(tx, tenantId));
    return GuardName.options.map((name) =>
      shownGuard(
        name,
        rows.find(({ guard }) => guard === name),
      ),
    );
  }

  /** Changes what is given of a guard; members of `config` one by one. */
  async update(author: Author, change: UpdateGuardRequest): Promise<Guard> {
    const { guard } = change;
    const { tenant_id: tenantId } = author;
    const after = await this.#db.tenant(tenantId, async (tx) => {
      await beginPolicyChange(tx, tenantId);
      const before = (await readGuards(tx, tenantId)).find((row) => row.guard === guard);
      const { enabled, decision } = { ...GUARD_DEFAULTS[guard], ...before };
      const row = {
        guard,
        enabled: change.enabled ?? enabled,
        decision: change.decision ?? decision,
        config: { ...before?.config, ...change.config },
      };
      const saved = shownGuard(guard, await saveGuard(tx, row, author));
      const states = { before: shownGuard(guard, before), after: saved };
      await recordAudit(tx, author, { action: 'guard.update', target: { type: 'guard', id: guard }, ...states });
      return saved;
    });
    this.#changed(tenantId);
    return after;
  }
}
