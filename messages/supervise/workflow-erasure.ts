import type { Client } from '@temporalio/client';
import {
  alertWorkflowPrefix,
  type DeliveryInput,
  deliveryWorkflowId,
  messageWorkflowId,
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
/** Beginnings of ids in one query. */
const PREFIXES_AT_ONCE = 50;
/** gRPC status of a workflow that is not there. */
const NOT_FOUND = 5;
/** The first parts of the ids of workflows (workflows/definitions.ts). A tenant's id is the second. */
const KINDS = ['message', 'session', 'plan', 'delivery', 'ingest'];

interface WorkflowRun {
  workflowId: string;
  runId?: string;
}

/** A delivery, as its row names it. */
export type NamedDelivery = DeliveryInput;

/** Workflows: by their ids, and those whose ids begin in a way. */
export interface WorkflowNames {
  ids: readonly string[];
  prefixes?: readonly string[];
}

/** The workflows of deliveries. Those that were started again are found by how their ids begin. */
export function deliveryWorkflows(deliveries: readonly NamedDelivery[]): Required<WorkflowNames> {
  const prefixOf = (of: NamedDelivery) => ('config_id' in of ? pushWorkflowPrefix(of) : alertWorkflowPrefix(of));
  return {
    ids: deliveries.map((delivery) => deliveryWorkflowId(delivery, 1)),
    prefixes: [...new Set(deliveries.map(prefixOf))],
  };
}

/** The workflows of messages and of deliveries about them. */
export function messageWorkflows(
  tenantId: string,
  messages: readonly { message_id: string }[],
  deliveries: readonly NamedDelivery[],
): WorkflowNames {
  const { ids, prefixes } = deliveryWorkflows(deliveries);
  return {
    ids: [...messages.map(({ message_id }) => messageWorkflowId({ tenant_id: tenantId, message_id })), ...ids],
    prefixes,
  };
}

/** The workflows of a session and of its plans. */
export function sessionWorkflows(session: SessionInput, plans: readonly { plan_id: string }[]): WorkflowNames {
  const { tenant_id } = session;
  const ofPlans = plans.map(({ plan_id }) => planWorkflowId({ tenant_id, plan_id }));
  return { ids: [sessionWorkflowId(session), ...ofPlans] };
}

/** What Temporal lists of them; an id that cannot be quoted is not listed. */
function queriesOf({ ids, prefixes = [] }: WorkflowNames): string[] {
  const quoted = (texts: readonly string[]) => texts.filter((text) => !/["'\\]/.test(text)).map((text) => `"${text}"`);
  const named = quoted(ids);
  const queries = named.length > 0 ? [`WorkflowId IN (${named.join()})`] : [];
  const begun = quoted(prefixes).map((prefix) => `WorkflowId STARTS_WITH ${prefix}`);
  for (let first = 0; first < begun.length; first += PREFIXES_AT_ONCE)
    queries.push(begun.slice(first, first + PREFIXES_AT_ONCE).join(' OR '));
  return queries;
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

/** Deletes workflows with their histories, by the Temporal client of this process. */
export function createWorkflowErasure(temporal: TemporalLink): WorkflowErasure {
  return {
    erase: async (workflows) => {
      // Earlier runs have to be listed. The newest run is deleted by its id alone, because it may not be listed yet.
      const runs: WorkflowRun[] = [];
      for (const query of queriesOf(workflows)) runs.push(...(await listRuns(temporal, query)));
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
