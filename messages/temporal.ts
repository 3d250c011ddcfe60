import {
  Client,
  Connection,
  type ConnectionOptions,
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  type WorkflowExecutionStatusName,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { defineSearchAttributeKey, type SearchAttributePair, SearchAttributeType } from '@temporalio/common';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import {
  AGENT_WATCH,
  FLEET_QUEUE,
  type MessageInput,
  messageWorkflowId,
  type SessionInput,
  sessionWorkflowId,
  WAKE_SIGNAL,
} from '../workflows/definitions.js';

const ATTRIBUTES = ['FleetTenant', 'FleetSession', 'FleetAgentType', 'FleetState'] as const;
const CALL_TIMEOUT_MS = 5_000;

/** What became of a workflow, as far as supervision cares. */
export type WorkflowFate = 'running' | 'missing' | 'ended_by_operator' | 'ended';

/** The platform's link to the Temporal cluster. Calls fail when it cannot be reached; callers leave the rest to the sweeper. */
export interface TemporalLink {
  /** Starts the message's workflow, or wakes it when it runs. */
  wakeMessage(input: MessageInput): Promise<void>;
  wakeSession(input: SessionInput): Promise<void>;
  fateOfMessage(ref: { tenant_id: string; message_id: string }): Promise<WorkflowFate>;
  fateOfSession(ref: { tenant_id: string; session_id: string }): Promise<WorkflowFate>;
  /** Makes sure of the schedule of the watch over the agents. */
  ensureAgentWatch(): Promise<void>;
  isReachable(): Promise<boolean>;
  close(): Promise<void>;
}

const key = (name: (typeof ATTRIBUTES)[number]) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);

/** Keyword values are bounded on the server; identifiers here are far below. */
function attributes(tenantId: string, sessionId: string, state: string): SearchAttributePair[] {
  return [
    { key: key('FleetTenant'), value: tenantId },
    { key: key('FleetSession'), value: sessionId },
    { key: key('FleetState'), value: state },
  ];
}

/** Registers what is missing. @returns whether the cluster has them all */
async function ensureSearchAttributes(connection: Connection, namespace: string, log: Logger): Promise<boolean> {
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    const missing = ATTRIBUTES.filter((name) => !(name in (customAttributes ?? {})));
    if (missing.length > 0) {
      const KEYWORD = 2;
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
      });
      log.info({ missing }, 'search attributes registered');
    }
    return true;
  } catch (error) {
    log.warn(
      { err: errorMessage(error), search_attributes: ATTRIBUTES },
      'the Temporal cluster refuses the search attributes; workflows run without them, filter by workflow id instead',
    );
    return false;
  }
}

function fateOf(status: WorkflowExecutionStatusName): WorkflowFate {
  if (status === 'RUNNING' || status === 'CONTINUED_AS_NEW' || status === 'PAUSED') return 'running';
  return status === 'TERMINATED' || status === 'CANCELLED' || status === 'FAILED' || status === 'TIMED_OUT'
    ? 'ended_by_operator'
    : 'ended';
}

class Link implements TemporalLink {
  readonly #client: Client;
  readonly #visible: boolean;

  constructor(
    private readonly connection: Connection,
    namespace: string,
    visible: boolean,
  ) {
    this.#client = new Client({ connection, namespace });
    this.#visible = visible;
  }

  async wakeMessage(input: MessageInput): Promise<void> {
    await this.#wake('message', messageWorkflowId(input), input, `message ${input.message_id}`, 'submitted');
  }

  async wakeSession(input: SessionInput): Promise<void> {
    await this.#wake('session', sessionWorkflowId(input), input, `session ${input.session_id}`, 'active');
  }

  async fateOfMessage(ref: { tenant_id: string; message_id: string }): Promise<WorkflowFate> {
    return this.#fate(messageWorkflowId(ref));
  }

  async fateOfSession(ref: { tenant_id: string; session_id: string }): Promise<WorkflowFate> {
    return this.#fate(sessionWorkflowId(ref));
  }

  async ensureAgentWatch(): Promise<void> {
    try {
      await this.#client.schedule.create({
        scheduleId: AGENT_WATCH.scheduleId,
        spec: { intervals: [{ every: AGENT_WATCH.everySeconds * 1_000 }] },
        policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1m' },
        action: {
          type: 'startWorkflow',
          workflowType: 'agentWatch',
          workflowId: AGENT_WATCH.scheduleId,
          taskQueue: FLEET_QUEUE,
          args: [],
          workflowRunTimeout: '10m',
          staticSummary: 'watch over the agents',
        },
      });
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
  }

  async isReachable(): Promise<boolean> {
    try {
      await this.connection.withDeadline(Date.now() + 2_000, () => this.connection.workflowService.getSystemInfo({}));
      return true;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    await this.connection.close();
  }

  async #wake(
    type: string,
    workflowId: string,
    input: MessageInput | SessionInput,
    summary: string,
    state: string,
  ): Promise<void> {
    const start = {
      workflowId,
      taskQueue: FLEET_QUEUE,
      args: [input],
      staticSummary: summary,
      workflowIdConflictPolicy: 'USE_EXISTING' as const,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE' as const,
      ...(this.#visible && { typedSearchAttributes: attributes(input.tenant_id, input.session_id, state) }),
    };
    await this.connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      this.#client.workflow.signalWithStart(type, { ...start, signal: WAKE_SIGNAL, signalArgs: [] }),
    );
  }

  async #fate(workflowId: string): Promise<WorkflowFate> {
    try {
      const description = await this.connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
        this.#client.workflow.getHandle(workflowId).describe(),
      );
      return fateOf(description.status.name);
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'missing';
      throw error;
    }
  }
}

/**
 * Connects to the cluster and registers the search attributes; a cluster that refuses them is used without.
 * @throws when the cluster cannot be reached
 */
export async function connectTemporal(options: {
  connection: ConnectionOptions;
  namespace: string;
  log: Logger;
}): Promise<TemporalLink> {
  const connection = await Connection.connect(options.connection);
  const visible = await ensureSearchAttributes(connection, options.namespace, options.log);
  return new Link(connection, options.namespace, visible);
}
