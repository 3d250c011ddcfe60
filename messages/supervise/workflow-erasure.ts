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
} from '../../contracts/workflows.js';
import type { TemporalLink } from './temporal-link.js';

/** Concurrent calls that describe or delete a workflow. */
const AT_ONCE = 8;
/** Workflows that one call lists at most; the next call lists the rest. */
const LISTED_MAX = 1_000;
/** Ids in one query, and beginnings of ids. */
const IDS_AT_ONCE = 200;
const PREFIXES_AT_ONCE = 50;
/** gRPC status of a workflow that is not there. */
const NOT_FOUND = 5;
/** The first parts of the ids of workflows (contracts/workflows.ts). A tenant's id is the second. */
const KINDS = ['message', 'session', 'plan', 'delivery', 'ingest'];

interface WorkflowRun {
  workflowId: string;
  runId?: string;
}

/** Workflows with these ids, and those whose ids begin with one of the prefixes. */
export interface WorkflowNames {
  ids: readonly string[];
  prefixes?: readonly string[];
}

/** The workflows of deliveries. Repeated starts have other ids, which are found by their prefix. */
export function deliveryWorkflows(deliveries: readonly DeliveryInput[]): Required<WorkflowNames> {
  const prefixOf = (of: DeliveryInput) => ('config_id' in of ? pushWorkflowPrefix(of) : alertWorkflowPrefix(of));
  return {
    ids: deliveries.map((delivery) => deliveryWorkflowId(delivery, 1)),
    prefixes: [...new Set(deliveries.map(prefixOf))],
  };
}

/** The workflows of messages and of deliveries about them. */
export function messageWorkflows(
  tenantId: string,
  messages: readonly { message_id: string }[],
  deliveries: readonly DeliveryInput[],
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

/** The queries that list workflows. Ids that cannot be quoted are left out. */
function queriesOf({ ids, prefixes = [] }: WorkflowNames): string[] {
  const quoted = (texts: readonly string[]) => texts.filter((text) => !/["'\\]/.test(text)).map((text) => `"${text}"`);
  return [
    ...inParts(quoted(ids), IDS_AT_ONCE).map((some) => `WorkflowId IN (${some.join()})`),
    ...inParts(quoted(prefixes), PREFIXES_AT_ONCE).map((some) =>
      some.map((prefix) => `WorkflowId STARTS_WITH ${prefix}`).join(' OR '),
    ),
  ];
}

function inParts<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, part) =>
    items.slice(part * size, (part + 1) * size),
  );
}

/** Whether a run exists, from Temporal's answer to a call about it. */
async function isThere(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer;
    return true;
  } catch (error) {
    if ((error as { code?: number }).code === NOT_FOUND) return false;
    throw error;
  }
}

const describe = ({ connection, options: { namespace } }: Client, execution: WorkflowRun) =>
  isThere(connection.workflowService.describeWorkflowExecution({ namespace, execution }));
const remove = ({ connection, options: { namespace } }: Client, workflowExecution: WorkflowRun) =>
  isThere(connection.workflowService.deleteWorkflowExecution({ namespace, workflowExecution }));

/** Calls `work` for each run. @returns the runs that exist */
async function ofThose(
  temporal: TemporalLink,
  runs: readonly WorkflowRun[],
  work: (client: Client, run: WorkflowRun) => Promise<boolean>,
): Promise<WorkflowRun[]> {
  const found: WorkflowRun[] = [];
  for (const some of inParts(runs, AT_ONCE)) {
    const were = await temporal.call((client) => Promise.all(some.map((run) => work(client, run))));
    found.push(...some.filter((_, index) => were[index]));
  }
  return found;
}

/** The runs of queries, at most `LISTED_MAX` of each. Temporal lists changes some seconds late. */
async function listRuns(temporal: TemporalLink, queries: readonly string[]): Promise<WorkflowRun[]> {
  const runs: WorkflowRun[] = [];
  for (const query of queries) {
    const bound = runs.length + LISTED_MAX;
    await temporal.call(async ({ workflow }) => {
      for await (const { workflowId, runId } of workflow.list({ query })) {
        runs.push({ workflowId, runId });
        if (runs.length >= bound) break;
      }
    });
  }
  return runs;
}

const idsOf = (runs: readonly WorkflowRun[]) => [...new Set(runs.map(({ workflowId }) => workflowId))];
/** Without a run id Temporal takes the newest run, which may not be listed yet. */
const newestOf = (ids: readonly string[]): WorkflowRun[] => ids.map((workflowId) => ({ workflowId }));

/** Finds workflows, and deletes them with their histories. Running ones are terminated. */
export interface WorkflowErasure {
  /** The ids of those that exist. */
  find(workflows: WorkflowNames): Promise<string[]>;
  /** The ids of a tenant's workflows that Temporal lists now and that still exist, at most `LISTED_MAX`, and whether it lists any. */
  findOfTenant(tenantId: string): Promise<{ isListed: boolean; ids: string[] }>;
  /** Deletes all runs of these workflows. Ids that do not exist are ignored. */
  erase(ids: readonly string[]): Promise<void>;
}

/** Finds and deletes workflows by the Temporal client of this process. */
export function createWorkflowErasure(temporal: TemporalLink): WorkflowErasure {
  return {
    find: async (workflows) => {
      const newest = idsOf(await ofThose(temporal, newestOf(workflows.ids), describe));
      const known = new Set(newest);
      const listed = await listRuns(temporal, queriesOf(workflows));
      const others = listed.filter(({ workflowId }) => !known.has(workflowId));
      return [...newest, ...idsOf(await ofThose(temporal, others, describe))];
    },
    findOfTenant: async (tenantId) => {
      const query = KINDS.map((kind) => `WorkflowId STARTS_WITH "${kind}:${tenantId}:"`).join(' OR ');
      const listed = await listRuns(temporal, [query]);
      return { isListed: listed.length > 0, ids: idsOf(await ofThose(temporal, listed, describe)) };
    },
    erase: async (ids) => {
      const earlier = await listRuns(temporal, queriesOf({ ids }));
      await ofThose(temporal, [...newestOf(ids), ...earlier], remove);
    },
  };
}
