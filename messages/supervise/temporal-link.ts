import {
  Client,
  Connection,
  type ConnectionLike,
  type ConnectionOptions,
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  type WorkflowExecutionStatusName,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { AsyncContext } from '../../runtime/async-context.js';
import type { Logger } from '../../runtime/logger.js';
import {
  AGENT_WATCH,
  type DeliveryInput,
  deliveryWorkflowId,
  FLEET_QUEUE,
  type MessageInput,
  messageWorkflowId,
  type SessionInput,
  sessionWorkflowId,
  WAKE_SIGNAL,
} from '../../workflows/definitions.js';
import { ensureSearchAttributes, searchAttributes } from './search-attributes.js';

const CALL_TIMEOUT_MS = 5_000;
const REACH_TIMEOUT_MS = 2_000;

/** What became of a workflow, as far as supervision cares. */
export type WorkflowFate = 'running' | 'missing' | 'ended_by_operator' | 'ended';

/** The platform's link to the Temporal cluster. Calls fail when it cannot be reached; callers leave the rest to the sweeper. */
export interface TemporalLink {
  /** Starts the message's workflow, or wakes it when it runs. Resolves when that is acknowledged, as all here do. */
  wakeMessage(input: MessageInput): Promise<void>;
  /**
   * Starts the workflow of a message that has none yet, which costs less: no signal, and where this process has the worker, the first
   * task comes with the answer instead of through the server's queues. One that runs already is left alone.
   */
  startMessage(input: MessageInput): Promise<void>;
  wakeSession(input: SessionInput): Promise<void>;
  /** Starts the workflow that tells a push-notification config what there is to tell, or wakes it when it runs. */
  wakeDelivery(input: DeliveryInput): Promise<void>;
  fateOfMessage(ref: { tenant_id: string; message_id: string }): Promise<WorkflowFate>;
  fateOfSession(ref: { tenant_id: string; session_id: string }): Promise<WorkflowFate>;
  /** Makes sure of the schedule of the watch over the agents. */
  ensureAgentWatch(): Promise<void>;
  isReachable(): Promise<boolean>;
  /** From here on calls go over the connection of this process's worker; null: over the link's own again. */
  shareConnection(ofWorker: SharedConnection | null): void;
  close(): Promise<void>;
}

function fateOf(status: WorkflowExecutionStatusName): WorkflowFate {
  if (status === 'RUNNING' || status === 'CONTINUED_AS_NEW' || status === 'PAUSED') return 'running';
  return status === 'TERMINATED' || status === 'CANCELLED' || status === 'FAILED' || status === 'TIMED_OUT'
    ? 'ended_by_operator'
    : 'ended';
}

/** A connection with what calls over it need. */
interface Line {
  client: Client;
  context: AsyncContext;
}

/** A connection of either kind of the SDK's. */
export type SharedConnection = ConnectionLike & Pick<Connection, 'callContextStorage'>;

function lineOver(connection: SharedConnection, namespace: string): Line {
  return { client: new Client({ connection, namespace }), context: AsyncContext.of(connection.callContextStorage) };
}

class Link implements TemporalLink {
  readonly #own: Line;
  /** Over the worker's connection, which is what a workflow's first task can come back on. */
  #shared: Line | null = null;

  constructor(
    private readonly connection: Connection,
    private readonly namespace: string,
    private readonly visible: boolean,
  ) {
    this.#own = lineOver(connection, namespace);
  }

  shareConnection(ofWorker: SharedConnection | null): void {
    this.#shared = ofWorker && lineOver(ofWorker, this.namespace);
  }

  async wakeMessage(input: MessageInput): Promise<void> {
    const start = this.#startOf(messageWorkflowId(input), `message ${input.message_id}`, input, 'submitted');
    await this.#call(({ workflow }) =>
      workflow.signalWithStart('message', { ...start, signal: WAKE_SIGNAL, signalArgs: [] }),
    );
  }

  async startMessage(input: MessageInput): Promise<void> {
    const start = this.#startOf(messageWorkflowId(input), `message ${input.message_id}`, input, 'submitted');
    await this.#call(({ workflow }) =>
      workflow.start('message', { ...start, requestEagerStart: this.#shared !== null }),
    );
  }

  async wakeSession(input: SessionInput): Promise<void> {
    const start = this.#startOf(sessionWorkflowId(input), `session ${input.session_id}`, input, 'active');
    await this.#call(({ workflow }) =>
      workflow.signalWithStart('session', { ...start, signal: WAKE_SIGNAL, signalArgs: [] }),
    );
  }

  async wakeDelivery(input: DeliveryInput): Promise<void> {
    const summary = `notifications of ${input.message_id}`;
    const start = this.#startOf(deliveryWorkflowId(input), summary, input, 'delivering');
    await this.#call(({ workflow }) =>
      workflow.signalWithStart('delivery', { ...start, signal: WAKE_SIGNAL, signalArgs: [] }),
    );
  }

  async fateOfMessage(ref: { tenant_id: string; message_id: string }): Promise<WorkflowFate> {
    return this.#fate(messageWorkflowId(ref));
  }

  async fateOfSession(ref: { tenant_id: string; session_id: string }): Promise<WorkflowFate> {
    return this.#fate(sessionWorkflowId(ref));
  }

  async ensureAgentWatch(): Promise<void> {
    try {
      await this.#call(({ schedule }) =>
        schedule.create({
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
        }),
      );
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
  }

  async isReachable(): Promise<boolean> {
    try {
      await this.#over(this.#own, REACH_TIMEOUT_MS, ({ connection }) => connection.workflowService.getSystemInfo({}));
      return true;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    await this.connection.close();
  }

  #call<T>(work: (client: Client) => Promise<T>): Promise<T> {
    return this.#over(this.#shared ?? this.#own, CALL_TIMEOUT_MS, work);
  }

  #over<T>({ client, context }: Line, timeoutMs: number, work: (client: Client) => Promise<T>): Promise<T> {
    return context.run(() => client.connection.withDeadline(Date.now() + timeoutMs, () => work(client)));
  }

  #startOf<Input extends MessageInput | SessionInput | DeliveryInput>(
    workflowId: string,
    summary: string,
    input: Input,
    state: string,
  ) {
    return {
      workflowId,
      taskQueue: FLEET_QUEUE,
      args: [input] as [Input],
      staticSummary: summary,
      workflowIdConflictPolicy: 'USE_EXISTING' as const,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE' as const,
      ...(this.visible && { typedSearchAttributes: searchAttributes(input.tenant_id, input.session_id, state) }),
    };
  }

  async #fate(workflowId: string): Promise<WorkflowFate> {
    try {
      const description = await this.#call((client) => client.workflow.getHandle(workflowId).describe());
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
  AsyncContext.of(connection.callContextStorage).release(); // connecting has used it
  return new Link(connection, options.namespace, visible);
}
