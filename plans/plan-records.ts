import type { Plan, PlanStep, PlanSummary, PlansGetRequest, StepState } from '../contracts/api/plans.js';
import { actsAs, type Reader } from '../contracts/permissions.js';
import { NO_AGENT } from '../contracts/primitives.js';
import { viewOf } from '../db/ownership.js';
import { type CursorPage, KeyPosition, readCursorPage } from '../db/pages/cursor-page.js';
import { createCursors } from '../db/pages/cursors.js';
import type { KeyList } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { planDecisions } from '../messages/input/audit.js';
import { inputRequestOf } from '../messages/read/task.js';
import { PlatformError } from '../runtime/errors.js';
import { idBound, idRange, inBoth } from '../runtime/ids.js';
import type { Secrets } from '../runtime/secrets.js';
import { readPlanRequest } from './approvals/plan-request.js';
import { type ObservedStep, observedSteps, type PlanRef, type PlanRow, type StepRow } from './plan-rows.js';

/** The condition that a reader which acts as an agent sees the plans of its type. The parameter is the result of `actsAs`. */
const own = (parameter: string) => `(${parameter}::text IS NULL OR p.agent_type = ${parameter})`;

const STATES: StepState[] = ['pending', 'running', 'input-required', 'completed', 'failed', 'skipped'];

type Counts = Partial<Record<StepState, number>>;

function progressOf(counts: Counts) {
  const total = STATES.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  const of = (state: StepState) => counts[state] ?? 0;
  return {
    total,
    pending: of('pending'),
    running: of('running'),
    'input-required': of('input-required'),
    completed: of('completed'),
    failed: of('failed'),
    skipped: of('skipped'),
  };
}

const durationOf = (from: Date | null, to: Date | null) =>
  from && to ? { duration_ms: Math.max(0, to.getTime() - from.getTime()) } : {};

const failureOf = (code: string | null, message: string | null) =>
  code === null ? {} : { error: { code, message: message ?? '' } };

function timesOf({ started_at, ended_at }: { started_at: Date | null; ended_at: Date | null }) {
  return {
    ...(started_at && { started_at: started_at.toISOString() }),
    ...(ended_at && { ended_at: ended_at.toISOString() }),
    ...durationOf(started_at, ended_at),
  };
}

/** A plan with what its request says. */
type ListedPlan = PlanRow & {
  quorum: number;
  approvers: string[];
  approval_expires_at: Date;
  /** Null where no policy holds it back. */
  approval_reason: string | null;
};

const LISTED = `
  p.*, q.quorum, q.approvers, q.expires_at AS approval_expires_at, CASE WHEN q.source <> 'plan' THEN q.prompt END AS approval_reason
    FROM plans p JOIN input_requests q ON q.tenant_id = p.tenant_id AND q.plan_id = p.plan_id`;

function summaryOf(row: ListedPlan, counts: Counts): PlanSummary {
  const { plan_id, tenant_id, session_id, description, state, max_parallel, auto_approve, created_by } = row;
  return {
    ...{ plan_id, tenant_id, session_id, description, state, max_parallel, auto_approve, created_by },
    proposed_by: row.agent_type === NO_AGENT ? null : row.agent_type,
    created_at: row.created_at.toISOString(),
    ...(state === 'proposed' && { approval_expires_at: row.approval_expires_at.toISOString() }),
    ...{ quorum: row.quorum, approvers: row.approvers },
    ...(row.approval_reason !== null && { approval_reason: row.approval_reason }),
    ...timesOf(row),
    ...failureOf(row.error_code, row.error_message),
    ...(row.failed_step !== null && { failed_step: row.failed_step }),
    progress: progressOf(counts),
  };
}

/** A step that is under way stands where its message does, also before its plan has looked. */
function stateOf({ state, message_state }: ObservedStep): StepState {
  if ((state !== 'running' && state !== 'input-required') || message_state === null) return state;
  return message_state === 'input-required' ? 'input-required' : 'running';
}

function stepOf(
  row: ObservedStep,
  content: Pick<StepRow, 'description' | 'parts'>,
  idOf: (place: number) => string,
): PlanStep {
  const { step_id, place, agent_type, instance_id, skill_id, requires_approval, timeout_seconds, max_attempts } = row;
  const worker =
    row.worker_id !== null && row.worker_type !== null && row.worker_since
      ? { worker: { agent_type: row.worker_type, instance_id: row.worker_id, since: row.worker_since.toISOString() } }
      : {};
  return {
    ...{ step_id, index: place, description: content.description, agent_type, instance_id, skill_id },
    message: content.parts,
    depends_on: row.depends_on.map(idOf),
    ...{ requires_approval, timeout_seconds, max_attempts },
    ...{ state: stateOf(row), attempts: row.attempts, message_id: row.message_id },
    ...worker,
    ...timesOf(row),
    ...failureOf(row.error_code, row.error_message),
  };
}

async function stepsOf(tx: Tx, ref: PlanRef): Promise<PlanStep[]> {
  const contents = await tx.query<Pick<StepRow, 'description' | 'parts'>>(
    'SELECT description, parts FROM plan_steps WHERE tenant_id = $1 AND plan_id = $2 ORDER BY place',
    [ref.tenant_id, ref.plan_id],
  );
  const rows = await observedSteps(tx, ref);
  const idOf = (place: number) => rows[place]?.step_id ?? '';
  return rows.flatMap((row, place) => {
    const content = contents[place];
    return content ? [stepOf(row, content, idOf)] : [];
  });
}

/** Reads a plan with its steps. @throws PlatformError NOT_FOUND, also for a plan that the reader may not see */
export async function readPlan(tx: Tx, reader: Reader, planId: string): Promise<Plan> {
  const [row] = await tx.query<ListedPlan>(
    `SELECT ${LISTED} WHERE p.tenant_id = $1 AND p.plan_id = $2 AND ${own('$3')}`,
    [reader.tenant_id, planId, actsAs(reader)],
  );
  if (!row) throw new PlatformError('NOT_FOUND', 'There is no plan of that plan_id.');
  const steps = await stepsOf(tx, row);
  const counts: Counts = {};
  for (const { state } of steps) counts[state] = (counts[state] ?? 0) + 1;
  const request = row.state === 'proposed' ? await readPlanRequest(tx, row) : null;
  const decisions = await planDecisions(tx, row);
  return { ...summaryOf(row, counts), ...(request && { input_request: inputRequestOf(request) }), decisions, steps };
}

/** As `stateOf`. */
const STATE = `CASE WHEN s.state NOT IN ('running', 'input-required') OR s.message_id IS NULL THEN s.state
  WHEN r.state = 'input-required' THEN 'input-required' ELSE 'running' END`;

async function rowsOf(tx: Tx, tenantId: string, ids: string[]): Promise<PlanSummary[]> {
  const rows = await tx.query<ListedPlan & { counts: Counts }>(
    `SELECT (SELECT jsonb_object_agg(state, number) FROM (
         SELECT ${STATE} AS state, count(*) AS number
           FROM plan_steps s LEFT JOIN running_messages r ON r.tenant_id = s.tenant_id AND r.message_id = s.message_id
          WHERE s.tenant_id = p.tenant_id AND s.plan_id = p.plan_id GROUP BY 1) AS counted) AS counts, ${LISTED}
      WHERE p.tenant_id = $1 AND p.plan_id = ANY ($2) ORDER BY p.plan_id DESC`,
    [tenantId, ids],
  );
  return rows.map((row) => summaryOf(row, row.counts));
}

const MATCHING = `plans p WHERE p.tenant_id = $1 AND ${own('$2')} AND ($3::text IS NULL OR p.session_id = $3)
  AND ($4::text IS NULL OR p.state = $4) AND ($5::timestamptz IS NULL OR p.created_at >= $5) AND ($6::timestamptz IS NULL OR p.created_at < $6)
  AND ($7::text IS NULL OR p.plan_id >= $7) AND ($8::text IS NULL OR p.plan_id < $8)`;

/**
 * Lists the plans that a reader may see, newest first.
 * @throws PlatformError REQUEST_TIMEOUT as `readPage`; BAD_REQUEST for the cursor of another list
 */
export function listPlans(
  { db, secrets }: { db: Db; secrets: Pick<Secrets, 'macs'> },
  reader: Reader,
  query: PlansGetRequest,
): Promise<CursorPage<PlanSummary>> {
  const { tenant_id } = reader;
  const { cursor: _cursor, page: _page, page_size: _size, ...filters } = query;
  const { session_id = null, state = null, since = null, until = null } = filters;
  const ofTime = idRange((atMs) => idBound('plan', atMs), { from: query.since, to: query.until });
  const listBefore = (key: string | null): KeyList => {
    const { least, bound } = inBoth(ofTime, { least: null, bound: key });
    const values: KeyList['values'] = [tenant_id, actsAs(reader), session_id, state, since, until, least, bound];
    return { key: 'p.plan_id', from: MATCHING, orderBy: 'p.plan_id DESC', values };
  };
  const list = [tenant_id, viewOf(reader), filters];
  return readCursorPage(db, listBefore, query, {
    cursors: createCursors(secrets, { purpose: 'plan-cursor', list, schema: KeyPosition }),
    rowsOf: (tx, ids) => rowsOf(tx, tenant_id, ids),
    keyOf: ({ plan_id }) => plan_id,
  });
}
