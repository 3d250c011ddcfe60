import {
  Client,
  Connection,
  type ConnectionLike,
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  type WorkflowExecutionStatusName,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import {
  AGENT_WATCH,
  type DeliveryInput,
  deliveryWorkflowId,
  FLEET_QUEUE,
  type IngestInput,
  ingestWorkflowId,
  type MessageInput,
  messageOfWorkflow,
  messageWorkflowId,
  type PlanInput,
  planWorkflowId,
  SEARCH_ATTRIBUTES,
  type SessionInput,
  sessionWorkflowId,
  WAKE_SIGNAL,
} from '../../contracts/workflows.js';
import { AsyncContext } from '../../runtime/async-context.js';
import type { Logger } from '../../runtime/logger.js';
import type { MessageRef } from '../core.js';
import { ensureSearchAttributes } from './search-attributes.js';
import { checkAddress, checkNamespace, type TemporalTarget } from './temporal-availability.js';

const CALL_TIMEOUT_MS = 5_000;
const REACH_TIMEOUT_MS = 2_000;
/** Longer than a cluster takes to accept new search attributes. */
const PREPARE_TIMEOUT_MS = 15_000;
/** Workflows of one page of a list. */
const ENDED_PAGE = 500;

/** The state of a workflow, as far as the sweeper needs it. */
type WorkflowFate = 'running' | 'missing' | 'ended_by_operator' | 'ended';

/** The fate for a status of Temporal. `COMPLETED`, and any status that Temporal adds later, does not count as ended by an operator. */
function fateOf(status: WorkflowExecutionStatusName): WorkflowFate {
  if (status === 'RUNNING' || status === 'CONTINUED_AS_NEW' || status === 'PAUSED') return 'running';
  return status === 'TERMINATED' || status === 'CANCELLED' || status === 'FAILED' || status === 'TIMED_OUT'
    ? 'ended_by_operator'
    : 'ended';
}

/** The client's or the worker's kind of connection. */
type SharedConnection = ConnectionLike & Pick<Connection, 'callContextStorage'>;

function clientOver(connection: SharedConnection, { namespace, dataConverter }: TemporalTarget) {
  return {
    client: new Client({ connection, namespace, dataConverter }),
    context: AsyncContext.of(connection.callContextStorage),
  };
}

type ConnectedClient = ReturnType<typeof clientOver>;

/** The platform's client of the Temporal cluster. Calls reject until `prepare` and while the cluster cannot be reached; the sweeper repeats them. */
export class TemporalLink {
  readonly #connection: Connection;
  readonly #own: ConnectedClient;
  #isPrepared = false;
  #hasSearchAttributes = false;
  /** A client over the worker's connection, needed for eager starts (`startMessage`). */
  #shared: ConnectedClient | null = null;

  /** Asks Temporal for nothing yet. @throws for an address that cannot be one */
  constructor(
    private readonly target: TemporalTarget,
    private readonly log: Logger,
  ) {
    checkAddress(target.options.address);
    this.#connection = Connection.lazy(target.options);
    this.#own = clientOver(this.#connection, this.target);
  }

  /** Asks for the namespace and registers the search attributes, if the cluster permits it. @throws as `checkNamespace` */
  async prepare(): Promise<void> {
    await checkNamespace(this.target);
    const ensure = () => ensureSearchAttributes(this.#connection, this.target.namespace, this.log);
    this.#hasSearchAttributes = await this.#over(this.#own, PREPARE_TIMEOUT_MS, ensure);
    this.#isPrepared = true;
  }

  /** Later calls use the connection of this process's worker; null: the link's own connection. */
  shareConnection(ofWorker: SharedConnection | null): void {
    this.#shared = ofWorker && clientOver(ofWorker, this.target);
  }

  /** Starts the message's workflow, or wakes it if it runs. Like all calls it resolves when the cluster has acknowledged. */
  wakeMessage(input: MessageInput): Promise<void> {
    return this.#wake('message', this.#messageStart(input));
  }

  /**
   * Starts the workflow of a message that has none yet. It costs less: there is no signal, and if the worker is in this process, the first
   * task comes with the answer instead of through the server's queues. A workflow that runs already is left as it is.
   */
  async startMessage(input: MessageInput): Promise<void> {
    const start = { ...this.#messageStart(input), requestEagerStart: this.#shared !== null };
    await this.call(({ workflow }) => workflow.start('message', start));
  }

  wakeSession(input: SessionInput): Promise<void> {
    const summary = `session ${input.session_id}`;
    return this.#wake('session', this.#startOf(sessionWorkflowId(input), summary, input, 'active'));
  }

  /** Starts the workflow of a plan, or wakes it if it runs. */
  wakePlan(input: PlanInput): Promise<void> {
    return this.#wake('plan', this.#startOf(planWorkflowId(input), `plan ${input.plan_id}`, input, 'proposed'));
  }

  /** Starts the workflow of a delivery if it does not run. @param starts how often the delivery has been started, this time included */
  async ensureDelivery(input: DeliveryInput, starts: number): Promise<void> {
    const to = 'config_id' in input ? input.config_id : input.channel_id;
    const id = deliveryWorkflowId(input, starts);
    const start = this.#startOf(id, `${input.event_type} to ${to}`, input, 'delivering');
    await this.call(({ workflow }) => workflow.start('delivery', start));
  }

  /** Starts the workflow of a knowledge base's job if it does not run. */
  async ensureIngest(input: IngestInput): Promise<void> {
    const start = this.#startOf(ingestWorkflowId(input), `documents of ${input.job_id}`, input, 'processing');
    await this.call(({ workflow }) => workflow.start('ingest', start));
  }

  fateOfIngest(input: IngestInput): Promise<WorkflowFate> {
    return this.#fate(ingestWorkflowId(input));
  }

  fateOfMessage(ref: Omit<MessageInput, 'session_id'>): Promise<WorkflowFate> {
    return this.#fate(messageWorkflowId(ref));
  }

  fateOfSession(ref: SessionInput): Promise<WorkflowFate> {
    return this.#fate(sessionWorkflowId(ref));
  }

  /** Messages whose workflows did not end by themselves since this time, page by page. Temporal lists them some seconds late. */
  async *endedMessages(since: Date, pageSize = ENDED_PAGE): AsyncGenerator<MessageRef[]> {
    const query = `WorkflowType = "message" AND ExecutionStatus IN ("Terminated", "Canceled", "Failed", "TimedOut") AND CloseTime >= "${since.toISOString()}"`;
    let nextPageToken: Uint8Array | null | undefined;
    do {
      const request = { namespace: this.target.namespace, query, pageSize, nextPageToken };
      const page = await this.call(({ workflowService }) => workflowService.listWorkflowExecutions(request));
      nextPageToken = page.nextPageToken;
      const found = page.executions.flatMap(({ execution }) => messageOfWorkflow(execution?.workflowId ?? '') ?? []);
      if (found.length > 0) yield found;
    } while (nextPageToken && nextPageToken.length > 0);
  }

  fateOfPlan(ref: Omit<PlanInput, 'session_id'>): Promise<WorkflowFate> {
    return this.#fate(planWorkflowId(ref));
  }

  /** Creates the schedule of the workflow that watches the agents, unless it exists. */
  async ensureAgentWatch(): Promise<void> {
    try {
      await this.call(({ schedule }) =>
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

  isReachable(): Promise<boolean> {
    return this.#over(this.#own, REACH_TIMEOUT_MS, ({ connection }) =>
      connection.workflowService.getSystemInfo({}),
    ).then(
      () => true,
      () => false,
    );
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Runs calls of the client, all of them within 5 s. */
  async call<T>(work: (client: Client) => Promise<T>): Promise<T> {
    if (!this.#isPrepared) throw new Error('Temporal has not answered since the start');
    return this.#over(this.#shared ?? this.#own, CALL_TIMEOUT_MS, work);
  }

  #over<T>({ client, context }: ConnectedClient, timeoutMs: number, work: (client: Client) => Promise<T>): Promise<T> {
    return context.run(() => client.connection.withDeadline(Date.now() + timeoutMs, () => work(client)));
  }

  async #wake(type: string, start: WorkflowStartOptions): Promise<void> {
    const wake = { signal: WAKE_SIGNAL, signalArgs: [] };
    await this.call(({ workflow }) => workflow.signalWithStart(type, { ...start, ...wake }));
  }

  #messageStart(input: MessageInput) {
    return this.#startOf(messageWorkflowId(input), `message ${input.message_id}`, input, 'submitted');
  }

  #startOf(workflowId: string, staticSummary: string, input: SessionInput | IngestInput, state: string) {
    const { tenant, session, state: stateKey } = SEARCH_ATTRIBUTES;
    // The server bounds keyword values; these identifiers are far shorter.
    const typedSearchAttributes = [
      { key: tenant, value: input.tenant_id },
      ...('session_id' in input ? [{ key: session, value: input.session_id }] : []),
      { key: stateKey, value: state },
    ];
    return {
      workflowId,
      taskQueue: FLEET_QUEUE,
      args: [input],
      staticSummary,
      workflowIdConflictPolicy: 'USE_EXISTING' as const,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE' as const,
      ...(this.#hasSearchAttributes && { typedSearchAttributes }),
    };
  }

  async #fate(workflowId: string): Promise<WorkflowFate> {
    try {
      const description = await this.call((client) => client.workflow.getHandle(workflowId).describe());
      return fateOf(description.status.name);
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'missing';
      throw error;
    }
  }
}
