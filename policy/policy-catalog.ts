import { type Author, recordAudit } from '../audit/record-audit.js';
import type { Caller } from '../contracts/api/auth.js';
import type {
  CreatePolicyRequest,
  Evaluator,
  GetPoliciesRequest,
  Policy,
  PolicyTrace,
  TestPolicyRequest,
  TestPolicyResponse,
  UpdatePolicyRequest,
} from '../contracts/api/policies/policies.js';
import { LIMITS } from '../contracts/limits.js';
import { type Page, readPage } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { holdSecretKey } from '../db/secret-key.js';
import type { Outbound } from '../http/outbound.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';
import type { Secrets } from '../runtime/secrets.js';
import { checkBound, EVALUATOR_SECRET } from './compiled-policy.js';
import { compileCel } from './evaluators/cel.js';
import { compileMatch } from './matching/conditions.js';
import type { PolicyEngine } from './policy-engine.js';
import {
  beginPolicyChange,
  countPolicies,
  deletePolicy,
  type PolicyRow,
  policyList,
  readPolicies,
  readPoliciesOf,
  readPolicy,
  savePolicy,
} from './policy-store.js';
import { tokenFacts } from './token-facts.js';

/** What managing policies takes. */
export interface PolicyCatalogDeps {
  db: Db;
  secrets: Pick<Secrets, 'encrypt' | 'activate'>;
  outbound: Pick<Outbound, 'checkUrl'>;
  engine: PolicyEngine;
}

export type PolicyCatalog = ReturnType<typeof createPolicyCatalog>;

function noPolicy(): PlatformError {
  return new PlatformError('NOT_FOUND', 'There is no policy of that policy_id.');
}

const timeOf = (at: string | null): Date | null => (at === null ? null : new Date(at));

function shownPolicy(policy: PolicyRow): Policy {
  const { evaluator_secret, end_at, max_calls, calls_allowed, created_at, updated_at, ...row } = policy;
  const isWebhook = 'type' in row.evaluator && row.evaluator.type === 'webhook';
  return {
    ...row,
    evaluator: { ...row.evaluator, ...(isWebhook && { secret_set: evaluator_secret !== null }) },
    ...(end_at && { end_at: end_at.toISOString() }),
    ...(max_calls !== null && { max_calls, calls_allowed: calls_allowed ?? 0 }),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  };
}

function targetOf({ policy_id: id, name }: Policy) {
  return { type: 'policy', id, name };
}

/** The secret of the stored webhook, if the URL is the same: another receiver must not get what the first one trusts. @throws PlatformError BAD_REQUEST */
function keptSecret(url: string, before: Pick<PolicyRow, 'evaluator' | 'evaluator_secret'> | null): Buffer | null {
  if (!before?.evaluator_secret) return null;
  const { evaluator } = before;
  if ('type' in evaluator && evaluator.type === 'webhook' && evaluator.url === url) return before.evaluator_secret;
  throw new PlatformError(
    'BAD_REQUEST',
    'evaluator.secret: the URL has changed, and the stored secret is that of the one before. Give the secret of the new one, or null for none.',
  );
}

/** The evaluator as it is stored, and its secret: a given one, else that which was stored for the same URL. */
async function storedEvaluator(
  tx: Tx,
  evaluator: Evaluator,
  before: Pick<PolicyRow, 'evaluator' | 'evaluator_secret'> | null,
  secrets: PolicyCatalogDeps['secrets'],
) {
  if (!('type' in evaluator) || evaluator.type !== 'webhook') return { evaluator, evaluator_secret: null };
  const { secret, secret_set: _, ...shown } = evaluator;
  if (!secret)
    return { evaluator: shown, evaluator_secret: secret === undefined ? keptSecret(shown.url, before) : null };
  await holdSecretKey(tx, secrets);
  return { evaluator: shown, evaluator_secret: secrets.encrypt(secret, EVALUATOR_SECRET) };
}

/** Policies of tenants on Postgres, with encrypted secrets. All throw PlatformError NOT_FOUND when the tenant has no such policy. */
export function createPolicyCatalog({ db, secrets, outbound, engine }: PolicyCatalogDeps) {
  /** @throws PlatformError BAD_REQUEST for what cannot be compiled, or a URL that must not be reached */
  const check = (policy: Pick<PolicyRow, 'scope' | 'decision' | 'match' | 'evaluator' | 'max_calls'>): void => {
    const { match, decision, evaluator } = policy;
    checkBound(policy);
    compileMatch(match, decision);
    if (!('type' in evaluator)) return;
    if (evaluator.type === 'cel') compileCel(evaluator.expression);
    else {
      try {
        outbound.checkUrl(evaluator.url);
      } catch (error) {
        throw new PlatformError('BAD_REQUEST', `evaluator.url: ${errorMessage(error)}`);
      }
    }
  };
  const change = async <T>({ tenant_id: tenantId }: Author, work: (tx: Tx) => Promise<T>): Promise<T> => {
    const changed = await db.tenant(tenantId, async (tx) => {
      await beginPolicyChange(tx, tenantId);
      return work(tx);
    });
    engine.changed(tenantId);
    return changed;
  };
  const read = async (tx: Tx, tenantId: string, policyId: string, lock = false): Promise<PolicyRow> => {
    const row = await readPolicy(tx, tenantId, policyId, lock);
    if (!row) throw noPolicy();
    return row;
  };
  return {
    /**
     * Creates a policy. It decides from now on.
     * @throws PlatformError BAD_REQUEST for an expression or an address that cannot be used, CONFLICT beyond 2,000 policies
     */
    create: (author: Author, { tenant_id: _, end_at, ...request }: CreatePolicyRequest): Promise<Policy> => {
      check(request);
      if (end_at !== null && Date.parse(end_at) <= Date.now())
        throw new PlatformError('BAD_REQUEST', 'end_at: must be in the future.');
      const { tenant_id: tenantId } = author;
      return change(author, async (tx) => {
        if ((await countPolicies(tx, tenantId)) >= LIMITS.policiesPerTenant)
          throw new PlatformError('CONFLICT', `A tenant has at most ${LIMITS.policiesPerTenant} policies.`);
        const stored = await storedEvaluator(tx, request.evaluator, null, secrets);
        const row = { ...request, ...stored, end_at: timeOf(end_at), tenant_id: tenantId, policy_id: newId('pol') };
        const after = shownPolicy(await savePolicy(tx, row, author));
        await recordAudit(tx, author, { action: 'policy.create', target: targetOf(after), after });
        return after;
      });
    },
    /** A page of policies, newest first. */
    list: (tenantId: string, { scope, enabled, ...page }: GetPoliciesRequest): Promise<Page<Policy>> =>
      readPage(db, policyList(tenantId, scope, enabled), page, async (tx, policyIds) =>
        (await readPoliciesOf(tx, tenantId, policyIds)).map(shownPolicy),
      ),
    get: async (tenantId: string, policyId: string): Promise<Policy> =>
      shownPolicy(await db.tenant(tenantId, (tx) => read(tx, tenantId, policyId))),
    /** Changes the given fields. A webhook's secret stays where none is given and the URL is the same. @throws PlatformError as `create` */
    update: (author: Author, { tenant_id: _, policy_id, end_at, ...given }: UpdatePolicyRequest): Promise<Policy> =>
      change(author, async (tx) => {
        const before = await read(tx, author.tenant_id, policy_id, true);
        const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
        const row: PolicyRow = { ...before, ...fields, ...(end_at !== undefined && { end_at: timeOf(end_at) }) };
        check(row);
        const stored = given.evaluator && (await storedEvaluator(tx, given.evaluator, before, secrets));
        const after = shownPolicy(await savePolicy(tx, { ...row, ...stored }, author));
        const target = targetOf(after);
        await recordAudit(tx, author, { action: 'policy.update', target, before: shownPolicy(before), after });
        return after;
      }),
    delete: (author: Author, policyId: string): Promise<void> =>
      change(author, async (tx) => {
        const before = shownPolicy(await read(tx, author.tenant_id, policyId, true));
        await deletePolicy(tx, author.tenant_id, policyId);
        await recordAudit(tx, author, { action: 'policy.delete', target: targetOf(before), before });
      }),
    /** What would be decided, and why. Nothing follows from it. @throws PlatformError SERVICE_UNAVAILABLE */
    test: async (caller: Caller, request: TestPolicyRequest): Promise<TestPolicyResponse> => {
      const { scope, action, tool, agent_type, instance_id, skill_id, session_id, user_id } = request;
      const { tenant_id } = caller;
      const tested = await engine.test(tenant_id, {
        ...{ scope, action, arguments: request.arguments ?? {}, token: tokenFacts(caller) },
        ...(tool !== undefined && { tool }),
        agent: {
          ...(agent_type && { agent_type }),
          ...(instance_id && { instance_id }),
          ...(skill_id && { skill_id }),
        },
        session: { ...(session_id && { session_id }), ...(user_id && { user_id }) },
      });
      if (!tested) throw new PlatformError('SERVICE_UNAVAILABLE', 'The policies cannot be read at this moment.');
      const rows = await db.tenant(tenant_id, (tx) => readPolicies(tx, tenant_id));
      const disabled = rows.filter((row) => row.scope === scope && !row.enabled);
      return { ...tested, trace: [...tested.trace, ...disabled.map(disabledTrace)] };
    },
  };
}

function disabledTrace({ policy_id, name, decision, priority }: PolicyRow): PolicyTrace {
  return { policy_id, name, decision, priority, outcome: 'disabled', explanation: 'It is switched off.' };
}
