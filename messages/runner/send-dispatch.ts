import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { countFailure, countSuccess } from '../../agents/agent-health.js';
import type { Db } from '../../db/pool.js';
import type { GuardFinding, TenantGuards } from '../../policy/guards/types.js';
import { errorMessage, isTransient } from '../../runtime/errors.js';
import { agentKeyOf } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import type {
  AgentResult,
  AnswerOrFailure,
  DispatchEnd,
  Dispatches,
  DispatchRef,
  OpenDispatch,
} from '../dispatch/dispatches.js';
import type { ChunkBus } from '../stream/bus.js';
import { type GuardedOutput, OutputGate } from './output-gate.js';
import { type ProposePlan, withProposal } from './plan-proposals.js';
import type { RunningDispatch } from './running-dispatches.js';
import type { TransportResult } from './transport.js';

const FIRST_PAUSE_MS = 50;
const PAUSE_MAX_MS = 2_000;
/** Retried failures that are neither an absent database nor too much work, for example a deadlock or a statement's time limit. */
const FAILURES_MAX = 5;
const UNRECORDED_MAX = 10_000;
/** Refusals that are remembered. A dispatch that was forwarded before its refusal comes long before this many further ones. */
const REFUSED_MAX = 100_000;
/** Successes of a hosted agent are counted this often: they are its sign of life. */
const SUCCESS_INTERVAL_MS = 10_000;
const AGENTS_MAX = 10_000;
/** Something other than the dispatch's result closed it, or another node has it. */
export const CLOSED: DispatchEnd = { state: 'closed', message: null };

const LOST = { state: 'lost' } as const;

type Delivery = () => Promise<TransportResult>;

/** Nothing of the dispatch went out. */
export function notSent(reason: string): DispatchEnd {
  return { state: 'not_sent', message: null, reason };
}

/**
 * Retries database work until it succeeds. It retries forever, with growing pauses, while the database cannot be reached or is busy with
 * work of the same tenant: an agent's answer must not be lost. It throws any other failure after `FAILURES_MAX` attempts.
 * @param signal ends the retries; the promise then rejects with its reason
 */
export async function persist<T>(work: () => Promise<T>, log: Pick<Logger, 'warn'>, signal?: AbortSignal): Promise<T> {
  let pauseMs = FIRST_PAUSE_MS;
  for (let failures = 0; ; ) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) failures += 1;
      if (failures >= FAILURES_MAX) throw error;
      log.warn({ err: errorMessage(error), retry_in_ms: pauseMs }, 'database write failed, retrying');
    }
    await sleep(pauseMs, undefined, signal && { signal });
    pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
  }
}

/** What all dispatches of a process share. */
export interface SenderOptions {
  dispatches: Dispatches;
  bus: Pick<ChunkBus, 'publish'>;
  guards: TenantGuards;
  db: Db;
  log: Logger;
  /** Absent where agents may not propose plans in their results. */
  proposePlan?: ProposePlan;
  /** This node; new at every boot. */
  meshId: string;
}

/** Sends dispatches that are marked as sent, and writes their ends to the record. While the database is away it retries. */
export class DispatchSender {
  /** What the transports publish goes through it. */
  readonly output: OutputGate;
  readonly #options: SenderOptions;
  readonly #closing: AbortSignal;
  /** Sent dispatches whose end could not be written: a defect or a lasting refusal of the database, so there are few. */
  readonly #unrecorded = new LRUCache<string, true>({ max: UNRECORDED_MAX });
  /** Dispatches that this node has said it never sent, so that one which is forwarded late is not sent. */
  readonly #refused = new LRUCache<string, true>({ max: REFUSED_MAX });
  /** By agent, from when on its next success is counted, on `performance.now()`. A connected agent without a failure is not in it. */
  readonly #successDueMs = new LRUCache<string, number>({ max: AGENTS_MAX });

  /** @param closing once it is aborted, each write is tried only once */
  constructor(options: SenderOptions, closing: AbortSignal) {
    this.#options = options;
    this.#closing = closing;
    this.output = new OutputGate(options.bus, options.guards);
  }

  /** Sends a dispatch that the accept transaction has marked as sent. Never rejects. */
  async sendMarked(running: RunningDispatch, open: OpenDispatch, leaseValid: () => boolean): Promise<DispatchEnd> {
    const { sign } = running.transport;
    if (!sign) return this.send(running, open);
    try {
      const token = await this.sign(running, open);
      if (leaseValid()) return await this.send(running, open, token);
    } catch (error) {
      this.#logError(open, error, 'dispatch could not be signed');
    }
    running.enter('recording');
    return this.#record(running, open, { state: 'not_sent', reason: 'NEVER_SENT' });
  }

  /** Sends a dispatch and records its end. Never rejects. @param token from `sign` */
  send(running: RunningDispatch, open: OpenDispatch, token?: string): Promise<DispatchEnd> {
    return this.#follow(running, open, () => running.transport.send(open, running.signal, token));
  }

  /** Continues a dispatch that another node sent, and records its end. Never rejects. @param progress as for `Transport.adopt` */
  adopt(running: RunningDispatch, open: OpenDispatch, progress: string): Promise<DispatchEnd> {
    const { transport, signal } = running;
    const deliver = (): Promise<TransportResult> => transport.adopt?.(open, progress, signal) ?? Promise.resolve(LOST);
    return this.#follow(running, open, deliver, true);
  }

  /** From here on `disown` takes it for sent: nobody knows whether this node owns it. */
  noteUnrecorded(dispatchId: string): void {
    this.#unrecorded.set(dispatchId, true);
  }

  /** Signs the token of a dispatch's request; undefined where its transport needs none. */
  sign({ transport }: RunningDispatch, dispatch: DispatchRef & { instance_id: string }): Promise<string | undefined> {
    return this.persist(async () => transport.sign?.(dispatch));
  }

  /** Whether the dispatch was sent from here and its end could not be written. */
  isUnrecorded(dispatchId: string): boolean {
    return this.#unrecorded.get(dispatchId) !== undefined;
  }

  /** Notes that the dispatch is not sent from here any more. */
  refuse(dispatchId: string): void {
    this.#refused.set(dispatchId, true);
  }

  isRefused(dispatchId: string): boolean {
    return this.#refused.has(dispatchId);
  }

  /** Retries while the database is away. */
  persist<T>(work: () => Promise<T>): Promise<T> {
    return this.#closing.aborted ? work() : persist(work, this.#options.log, this.#closing);
  }

  /**
   * Ends a dispatch that is on the record as sent and does not run here. One that this node owns was never sent, unless it is
   * `unrecorded`. The agent of any other may have acted, so it is not sent again.
   */
  async disown(ref: DispatchRef & { mesh_id: string | null }): Promise<DispatchEnd> {
    const isNeverSent = ref.mesh_id === this.#options.meshId && !this.isUnrecorded(ref.dispatch_id);
    if (!isNeverSent) return this.#failAsLost(ref);
    this.refuse(ref.dispatch_id);
    return this.#release(ref, 'NEVER_SENT');
  }

  /** @param isContinued another node has published the beginning of its output */
  async #follow(
    running: RunningDispatch,
    open: OpenDispatch,
    deliver: Delivery,
    isContinued = false,
  ): Promise<DispatchEnd> {
    running.open = open;
    running.enter('sending');
    const onDenied = ({ reason }: GuardFinding): void => running.deny(reason);
    const output = this.output.begin({ open, isContinued, onDenied });
    const delivered = await this.#resultOf(running, open, deliver);
    const result = output ? await this.#inspected(output, open, delivered) : delivered;
    if (result.state === 'transferred') return CLOSED;
    running.enter('recording');
    return running.stopped === 'closed' ? CLOSED : this.#record(running, open, result);
  }

  /** The result as guards let it through. Without the guards nothing of it may be recorded, so this waits until they can be read. */
  async #inspected(output: GuardedOutput, open: OpenDispatch, result: TransportResult): Promise<TransportResult> {
    try {
      return await this.persist(() => this.output.end(output, open, result));
    } catch (error) {
      this.#logError(open, error, 'output of an agent could not be inspected');
      const message = 'The output could not be inspected.';
      return { state: 'failed', artifacts: [], error: { code: 'INTERNAL', message } };
    } finally {
      this.output.close(output, open);
    }
  }

  async #resultOf(running: RunningDispatch, open: OpenDispatch, deliver: Delivery): Promise<TransportResult> {
    if (running.stopped) return { state: 'not_sent', reason: 'AGENT_DISCONNECTED' };
    try {
      return await deliver();
    } catch (error) {
      this.#logError(open, error, 'transport failed');
      const message = 'The platform failed while it waited for the agent.';
      return { state: 'failed', error: { code: 'INTERNAL', message } };
    }
  }

  /** Records a result. Never rejects. */
  async #record(running: RunningDispatch, open: OpenDispatch, result: AgentResult): Promise<DispatchEnd> {
    const { dispatches } = this.#options;
    // Before the end is visible: a caller that sends again at the end finds the agent's health counted.
    await this.#countHealth(running, open, result);
    try {
      if (result.state === 'not_sent') return await this.#release(running.ref, result.reason);
      if (result.state === 'lost') return await this.#failAsLost(running.ref);
      return await this.#end(running, open, result);
    } catch (error) {
      this.#logError(open, error, 'end of a dispatch could not be recorded');
      if (result.state === 'not_sent') return notSent(result.reason);
    }
    try {
      const error = { code: 'INTERNAL', message: 'The result could not be stored.' };
      return (await this.persist(() => dispatches.end(open, { state: 'failed', error }, null))) ?? CLOSED;
    } catch (error) {
      this.#unrecorded.set(open.dispatch_id, true);
      this.#logError(open, error, 'dispatch is left to the workflow of its message');
      return { state: 'unrecorded', message: null };
    }
  }

  async #end(running: RunningDispatch, open: OpenDispatch, answer: AnswerOrFailure): Promise<DispatchEnd> {
    const { dispatches, bus, proposePlan } = this.#options;
    const proposes = proposePlan && answer.state === 'completed' && answer.plan_proposal !== undefined;
    const result = proposes ? await this.persist(() => withProposal(proposePlan, open, answer)) : answer;
    const { ref, transport } = running;
    for (;;) {
      const { epoch } = running;
      const end = await this.persist(() => dispatches.end(open, result, epoch));
      if (end) return end;
      await transport.epochSettled?.(open);
      if (running.epoch === epoch) break; // not a resume that raced with the result
    }
    const [closed] = await this.persist(() => dispatches.closedAmong([ref]));
    // A newer connection owns the agent, and fails this dispatch as lost as well.
    if (!closed) return this.#failAsLost(ref);
    transport.notifyClosed?.(open, closed.state, '');
    // This very result may have closed it when only the database's answer was lost; then nothing was published.
    bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
    return CLOSED;
  }

  /** Releases a dispatch of which nothing went out, so that its message is routed again. */
  async #release(ref: DispatchRef, reason: string): Promise<DispatchEnd> {
    await this.persist(() => this.#options.dispatches.release(ref, reason, { nothingSent: true }));
    // Also when it was not released: the commit of an earlier attempt may have done that.
    return notSent(reason);
  }

  async #failAsLost(ref: DispatchRef): Promise<DispatchEnd> {
    return (await this.persist(() => this.#options.dispatches.failAsLost(ref, 'AGENT_DISCONNECTED'))) ?? CLOSED;
  }

  /** Counts a success or failure of the agent. Never throws: a lost count only delays a change of its status. */
  async #countHealth(running: RunningDispatch, open: OpenDispatch, result: AgentResult): Promise<void> {
    const { db, log } = this.#options;
    const failed = result.state === 'lost' ? running.stopped !== 'closing' : result.health === 'failing';
    const succeeded = result.state !== 'lost' && result.health === 'well';
    try {
      if (failed) {
        this.#successDueMs.set(agentKeyOf(open), 0);
        if (await countFailure(db, open, running.epoch)) running.transport.becameUnhealthy?.(open, result);
      } else if (succeeded && this.#isSuccessDue(open)) await countSuccess(db, open);
    } catch (error) {
      log.warn({ err: errorMessage(error), instance_id: open.instance_id }, 'agent health could not be recorded');
    }
  }

  #isSuccessDue(agent: OpenDispatch): boolean {
    const key = agentKeyOf(agent);
    const isHosted = agent.deployment_mode === 'hosted';
    const nowMs = performance.now();
    if (nowMs < (this.#successDueMs.get(key) ?? (isHosted ? 0 : Number.POSITIVE_INFINITY))) return false;
    if (isHosted) this.#successDueMs.set(key, nowMs + SUCCESS_INTERVAL_MS);
    else this.#successDueMs.delete(key);
    return true;
  }

  #logError({ dispatch_id }: DispatchRef, error: unknown, text: string): void {
    this.#options.log.error({ err: errorMessage(error), dispatch_id }, text);
  }
}
