import type { Client } from '@temporalio/client';
import {
  deliveryWorkflowId,
  messageWorkflowId,
  planWorkflowId,
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
const KINDS = ['message', 'session', 'plan', 'delivery', 'alert', 'ingest'];

interface WorkflowRun {
  workflowId: string;
  runId?: string;
}

/** The workflows of messages and of the notifications about them. */
export function messageWorkflowIds(
  tenantId: string,
  messages: readonly { message_id: string }[],
  configs: readonly { message_id: string; config_id: string }[],
): string[] {
  return [
    ...messages.map(({ message_id }) => messageWorkflowId({ tenant_id: tenantId, message_id })),
    ...configs.map((config) => deliveryWorkflowId({ tenant_id: tenantId, ...config })),
  ];
}

/** The workflows of a session and of its plans. */
export function sessionWorkflowIds(session: SessionInput, plans: readonly { plan_id: string }[]): string[] {
  const { tenant_id } = session;
  return [sessionWorkflowId(session), ...plans.map(({ plan_id }) => planWorkflowId({ tenant_id, plan_id }))];
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
  erase(workflowIds: readonly string[]): Promise<number>;
  /** Deletes those of a tenant that Temporal lists now, at most `LISTED_MAX`. */
  eraseTenant(tenantId: string): Promise<{ listed: number; removed: number }>;
}

export function createWorkflowErasure(temporal: TemporalLink): WorkflowErasure {
  return {
    erase: async (workflowIds) => {
      // Earlier runs have to be listed. The newest run is deleted by its id alone, because it may not be listed yet.
      const quotable = workflowIds.filter((id) => !/["'\\]/.test(id)).map((id) => `"${id}"`);
      const runs = quotable.length > 0 ? await listRuns(temporal, `WorkflowId IN (${quotable.join()})`) : [];
      const newest = workflowIds.map((workflowId) => ({ workflowId }));
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
