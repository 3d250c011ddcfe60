import type { MessageInput } from '../../contracts/workflows.js';
import { errorMessage, isTenantBusy } from '../../runtime/errors.js';
import { newId } from '../../runtime/ids.js';
import { Loop } from '../../runtime/loop.js';
import {
  type AcceptRow,
  type CountLimits,
  type DispatchedRow,
  type DispatchOffer,
  type NewMessage,
  runAcceptTransaction,
} from '../accept/accept-transaction.js';
import type { MessageCore } from '../core.js';
import type { DispatchRunner } from '../runner/runner.js';
import type { DispatchEnd, Dispatches, LiveMessage, OpenDispatch } from './dispatches.js';
import { IdleAgents } from './idle-agents.js';
import { acceptedRow, dispatchedNow } from './open-dispatch.js';
import { createQueues } from './queues.js';
import { Taker } from './taker.js';

/** How often a watcher looks for workflows that are due. */
const WATCH_TICK_MS = 100;
/** Concurrent starts of workflows, in all and of one tenant. They are few, so that thousands that are due at once do not slow down other tenants. */
const [STARTS_MAX, STARTS_OF_TENANT_MAX] = [64, 4];
/** The pause between two attempts to start a workflow while Temporal is away. */
const WATCH_RETRY_MS = 2_000;

/** A message that an agent has. */
interface Watched {
  ref: MessageInput;
  /** When its workflow is to start, on `performance.now()`. */
  dueMs: number;
}

/** Starts the workflows of messages that agents have for long, so that operators see them. Nothing depends on it. */
class Watcher {
  readonly #messages = new Map<string, Watched>();
  readonly #start: (ref: MessageInput) => Promise<void>;
  readonly #log: MessageCore['log'];
  readonly #loop: Loop;
  #failing = false;

  /** @param start starts the workflow of a message; resolves when Temporal has acknowledged it */
  constructor(start: (ref: MessageInput) => Promise<void>, log: MessageCore['log']) {
    this.#start = start;
    this.#log = log;
    this.#loop = new Loop({ name: 'watch', intervalMs: WATCH_TICK_MS, work: () => this.#turn(), log });
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  add({ tenant_id, message_id, session_id }: MessageInput, afterMs: number): void {
    const ref = { tenant_id, message_id, session_id };
    this.#messages.set(message_id, { ref, dueMs: performance.now() + afterMs });
  }

  /** The agent no longer has the message. */
  remove(messageId: string): void {
    this.#messages.delete(messageId);
  }

  #due(): Watched[] {
    const now = performance.now();
    const due: Watched[] = [];
    const dueOf = new Map<string, number>();
    for (const message of this.#messages.values()) {
      if (due.length === STARTS_MAX) break;
      if (message.dueMs > now) continue;
      const ofTenant = (dueOf.get(message.ref.tenant_id) ?? 0) + 1;
      dueOf.set(message.ref.tenant_id, ofTenant);
      if (ofTenant <= STARTS_OF_TENANT_MAX) due.push(message);
    }
    return due;
  }

  /** Starts some of the workflows that are due. @returns milliseconds until the next turn; 0 while there may be more */
  async #turn(): Promise<number> {
    const due = this.#due();
    const results = await Promise.allSettled(due.map(({ ref }) => this.#start(ref)));
    const failure = results.find((result) => result.status === 'rejected');
    due.forEach((message, index) => {
      // The message may have ended meanwhile. A failed start is put at the end.
      if (!this.#messages.delete(message.ref.message_id) || results[index]?.status === 'fulfilled') return;
      this.#messages.set(message.ref.message_id, { ...message, dueMs: performance.now() + WATCH_RETRY_MS });
    });
    if (failure && !this.#failing)
      this.#log.warn({ err: errorMessage(failure.reason) }, 'messages cannot be watched yet; trying again');
    this.#failing = failure !== undefined;
    return due.length === 0 || this.#failing ? WATCH_TICK_MS : 0;
  }
}

/** Idle agents that are offered for a message. Concurrent messages are offered different ones. */
const IDLE_OFFERED = 2;

/** With `WATCH_AFTER_MS` 0 every message that is under way has a workflow from its first moment. */
const WATCHED_AT_ONCE = { dispatched: true, queued: true, rests: true } satisfies Partial<
  Record<AcceptRow['verdict'], true>
>;

export interface DispatcherOptions {
  core: MessageCore;
  dispatches: Dispatches;
  /** Null in a process without the mesh role. */
  runner: DispatchRunner | null;
  /** Whether other nodes can be told of messages for their agents. */
  reachesNodes(): boolean;
  /** Starts the workflow of a message; resolves when Temporal has acknowledged it. */
  watch(ref: MessageInput): Promise<void>;
}

/**
 * Gets messages to agents (docs/internals.md): a message is sent as it is accepted if an agent of this process has room, else it joins a queue. With the mesh
 * role the process sends the dispatches of its agents.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #watcher: Watcher;
  readonly #idle = new IdleAgents();
  /** Null without the mesh role. */
  readonly taker: Taker | null;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { core, dispatches, runner, watch } = options;
    this.#watcher = new Watcher(watch, core.log);
    const send = (open: OpenDispatch) => void this.#run(open);
    this.taker = runner && new Taker({ core, dispatches, queues: createQueues(core), idle: this.#idle, runner, send });
  }

  async stop(): Promise<void> {
    await this.taker?.stop();
    await this.#watcher.stop();
  }

  /**
   * Accepts a message and, where an agent of this process has room, sends it to that one.
   * @throws as `runAcceptTransaction`
   */
  async acceptAndSend(
    draft: NewMessage,
    options: { counting: CountLimits; mayDispatch: boolean; unavailableText?: string },
  ): Promise<{ row: AcceptRow; live: LiveMessage | null }> {
    const { core, runner } = this.#options;
    const { idempotencyHours } = core.limits;
    const { mayDispatch, ...given } = options;
    const offer = mayDispatch ? this.#offer(draft) : null;
    const id = offer?.dispatch_id;
    let isOutcomeKnown = false;
    try {
      const row = await runAcceptTransaction(core.db, draft, { ...given, offer, idempotencyHours });
      isOutcomeKnown = true;
      if (core.limits.watchAfterMs === 0 && row.verdict in WATCHED_AT_ONCE) this.#watchAtOnce(draft, row);
      if (row.verdict === 'queued') this.#queued(draft, row);
      if (row.verdict !== 'dispatched' || id === undefined) return { row, live: null };
      return { row, live: await this.#dispatched(draft, row as DispatchedRow, id) };
    } catch (error) {
      isOutcomeKnown ||= isTenantBusy(error); // nothing was written
      throw error;
    } finally {
      if (id !== undefined) runner?.releaseReservation(id);
      if (id !== undefined && !isOutcomeKnown) runner?.noteNothingSent({ tenant_id: draft.tenant_id, dispatch_id: id });
    }
  }

  /** The dispatch that the accept transaction may open, if this process has room to send it. */
  #offer({ tenant_id, want_agent_type }: NewMessage): DispatchOffer {
    const { runner, reachesNodes } = this.#options;
    const reaches_nodes = reachesNodes();
    if (!runner?.hasRoomFor(tenant_id)) return { reaches_nodes };
    const dispatch_id = newId('dsp');
    if (!runner.reserve(dispatch_id)) return { reaches_nodes };
    const idle_ids = want_agent_type === null ? [] : this.#idle.some(tenant_id, want_agent_type, IDLE_OFFERED);
    return { reaches_nodes, dispatch_id, mesh_id: runner.meshId, ...(idle_ids.length > 0 && { idle_ids }) };
  }

  #watchAtOnce({ tenant_id }: NewMessage, { message_id, session_id }: AcceptRow): void {
    this.#options.core.workflowStarter.message({ tenant_id, message_id, session_id });
  }

  /** A message has joined a queue. If an agent of another node has room, that node is notified; else, unless it waits behind others, agents are looked for. */
  #queued({ tenant_id }: NewMessage, { instance_id, mesh_id, new_queue }: AcceptRow): void {
    const { nodes } = this.#options.core;
    if (instance_id !== null) nodes.fill({ tenant_id, instance_id }, mesh_id);
    else if (new_queue !== null) nodes.look({ tenant_id, queue: new_queue });
  }

  async #dispatched(draft: NewMessage, row: DispatchedRow, dispatch_id: string): Promise<LiveMessage | null> {
    const open = dispatchedNow(draft, row, dispatch_id);
    const ended = this.#start(open);
    if (ended !== null) return { row: acceptedRow(draft, row), dispatch_id, ended };
    await this.#release(open);
    return null;
  }

  /** Sends a dispatch that was taken from a queue. Never rejects. */
  async #run(open: OpenDispatch): Promise<void> {
    if (!this.#start(open)) await this.#release(open);
  }

  /** @returns the end of the dispatch; null when nothing was sent, and nothing will be */
  #start(open: OpenDispatch): Promise<DispatchEnd> | null {
    const { runner, core } = this.#options;
    const ended = runner?.send(open);
    if (!ended) return null;
    this.#idle.remove(open);
    if (core.limits.watchAfterMs > 0) this.#watcher.add(open, core.limits.watchAfterMs);
    return ended.then((end) => this.#ended(open, end));
  }

  #ended(open: OpenDispatch, end: DispatchEnd): DispatchEnd {
    this.#watcher.remove(open.message_id);
    this.taker?.ended(open, end);
    return end;
  }

  /** Nothing was sent, because this process has no room for the dispatch or no connection to the agent any more: the message is queued again. Never rejects. */
  async #release(open: OpenDispatch): Promise<void> {
    const { core, dispatches, runner } = this.#options;
    try {
      await runner?.saturationKnown(open);
      await dispatches.release(open, 'NOT_REACHED_HERE', { nothingSent: true });
    } catch (error) {
      const { message_id, dispatch_id } = open;
      core.log.warn({ err: errorMessage(error), message_id, dispatch_id }, 'dispatch could not be released yet');
      runner?.noteNothingSent(open);
    }
  }
}
