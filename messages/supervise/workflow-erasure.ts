import type { Client } from '@temporalio/client';
import {
  deliveryWorkflowId,
  messageWorkflowId,
  type PushDeliveryInput,
  planWorkflowId,
  pushWorkflowPrefix,
  type SessionInput,
  sessionWorkflowId,
} from '../../workflows/definitions.js';
import type { TemporalLink } from './temporal-link.js';

/** Workflows that are deleted at a time. */
const AT_ONCE = 8;
/** Workflows that one call lists at most; the next call lists the rest. */
const LISTED_MAX = 1_000;
/** gRPC status of a workflow that is not there. */
const NOT_FOUND = 5;
/** The first parts of the ids of workflows (workflows/definitions.ts). A tenant's id is the second. */
const KINDS = ['message', 'session', 'plan', 'delivery', 'ingest'];

interface WorkflowRun {
  workflowId: string;
  runId?: string;
}

/** A push notification, as its row names it. */
export type SentNotification = PushDeliveryInput;

/** Workflows: by their ids, and those whose ids begin in a way. */
export interface WorkflowNames {
  ids: readonly string[];
  prefixes?: readonly string[];
}

/**
 * The workflows of messages and of the push notifications about them. Those of notifications that were started again are found by how their ids
 * begin.
 */
export function messageWorkflows(
  tenantId: string,
  messages: readonly { message_id: string }[],
  notifications: readonly SentNotification[],
): WorkflowNames {
  const started = notifications.map((notification) => deliveryWorkflowId(notification, 1));
  return {
    ids: [...messages.map(({ message_id }) => messageWorkflowId({ tenant_id: tenantId, message_id })), ...started],
    prefixes: [...new Set(notifications.map(pushWorkflowPrefix))],
  };
}

/** The workflows of a session and of its plans. */
export function sessionWorkflows(session: SessionInput, plans: readonly { plan_id: string }[]): WorkflowNames {
  const { tenant_id } = session;
  const ofPlans = plans.map(({ plan_id }) => planWorkflowId({ tenant_id, plan_id }));
  return { ids: [sessionWorkflowId(session), ...ofPlans] };
}

/** What Temporal lists of them; an id that cannot be quoted is not listed. */
function queryOf({ ids, prefixes = [] }: WorkflowNames): string | null {
  const quoted = (texts: readonly string[]) => texts.filter((text) => !/["'\\]/.test(text)).map((text) => `"${text}"`);
  const named = quoted(ids);
  const conditions = [
    ...(named.length > 0 ? [`WorkflowId IN (${named.join()})`] : []),
    ...quoted(prefixes).map((prefix) => `WorkflowId STARTS_WITH ${prefix}`),
  ];
  return conditions.length > 0 ? conditions.join(' OR ') : null;
}

async function remove({ connection, options }: Client, run: WorkflowRun): Promise<boolean> {
  try {
    await connection.workflowService.deleteWorkflowExecution({
      namespace: options.namespace,
      workflowExecution: run,
    });
    return true;
  } catch (error) {
    if ((error as { code?: number }).code === NOT_FOUND) return false;
    throw error;
  }
}

async function removeAll(temporal: TemporalLink, runs: readonly WorkflowRun[]): Promise<string[]> {
  const removed: string[] = [];
  for (let first = 0; first < runs.length; first += AT_ONCE) {
    const some = runs.slice(first, first + AT_ONCE);
    const done = await temporal.call((client) => Promise.all(some.map((run) => remove(client, run))));
    removed.push(...some.filter((_, index) => done[index]).map(({ workflowId }) => workflowId));
  }
  return removed;
}

/** The runs of a query, at most `LISTED_MAX`. Temporal lists changes some seconds late. */
function listRuns(temporal: TemporalLink, query: string): Promise<WorkflowRun[]> {
  return temporal.call(async ({ workflow }) => {
    const runs: WorkflowRun[] = [];
    for await (const { workflowId, runId } of workflow.list({ query })) {
      runs.push({ workflowId, runId });
      if (runs.length >= LISTED_MAX) break;
    }
    return runs;
  });
}

/** Deletes workflows with their histories; those that run are terminated. */
export interface WorkflowErasure {
  /** @returns how many of these there were */
  erase(workflows: WorkflowNames): Promise<number>;
  /** Deletes those of a tenant that Temporal lists now, at most `LISTED_MAX`. */
  eraseTenant(tenantId: string): Promise<{ listed: number; removed: number }>;
}

export function createWorkflowErasure(temporal: TemporalLink): WorkflowErasure {
  return {
    erase: async (workflows) => {
      // Earlier runs have to be listed. The newest run is deleted by its id alone, because it may not be listed yet.
      const query = queryOf(workflows);
      const runs = query === null ? [] : await listRuns(temporal, query);
      const newest = workflows.ids.map((workflowId) => ({ workflowId }));
      const removed = [...(await removeAll(temporal, newest)), ...(await removeAll(temporal, runs))];
      return new Set(removed).size;
    },
    eraseTenant: async (tenantId) => {
      const query = KINDS.map((kind) => `WorkflowId STARTS_WITH "${kind}:${tenantId}:"`).join(' OR ');
      const runs = await listRuns(temporal, query);
      return { listed: runs.length, removed: (await removeAll(temporal, runs)).length };
    },
  };
}
