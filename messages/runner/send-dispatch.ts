import { LRUCache } from 'lru-cache';
import { countFailure, countOutcome, countSuccess } from '../../agents/agent-health.js';
import { persist } from '../../db/pool.js';
import { errorMessage } from '../../runtime/errors.js';
import { agentKeyOf } from '../../runtime/ids.js';
import type { AgentResult, AnswerOrFailure, DispatchEnd, DispatchRef, OpenDispatch } from '../dispatch/dispatches.js';
import { errorOf } from '../dispatch/message-end.js';
import { CLOSED, LostDispatches, notSent } from './lost-dispatches.js';
import { OutputGate } from './output-gate.js';
import { withProposal } from './plan-proposals.js';
import type { RunningDispatch, SendClock } from './running-dispatches.js';
import type { SenderOptions, Taking } from './sender-options.js';
import type { TransportResult } from './transport.js';

/** A success of a hosted agent is counted at most this often. It shows that the agent lives. */
const SUCCESS_INTERVAL_MS = 10_000;
const AGENTS_MAX = 10_000;
const LOST = { state: 'lost' } as const;
/** The error code of a message if the agent's handler failed. */
const HANDLER_FAILED = 'HANDLER_ERROR';

type Sending = () => Promise<TransportResult>;

/** Dispatches that have ended, for metrics. */
export interface DispatchCounts {
  byEnd: Partial<Record<DispatchEnd['state'], number>>;
  /** By n, how many took at least 2ⁿ⁻¹ and less than 2ⁿ milliseconds. */
  byBitsOfMs: number[];
  ms: number;
}

/** A time in milliseconds has at most so many bits: it is bounded by the deadline of a dispatch, a day. */
const MS_BITS = 32;
const noDispatches = (): DispatchCounts => ({ byEnd: {}, byBitsOfMs: new Array<number>(MS_BITS + 1).fill(0), ms: 0 });

/** Sends dispatches that are marked as sent, and writes their ends to the record. While the database is away it retries. */
export class DispatchSender {
  /** Transports publish through it. */
  readonly output: OutputGate;
  readonly counts: DispatchCounts = noDispatches();
  readonly #options: SenderOptions;
  readonly #closing: AbortSignal;
  /** Takes an agent's next message with the end of each dispatch; undefined in a process that takes nothing from queues. */
  taking: Taking | undefined;
  /** Ends dispatches that this node does not run. */
  readonly lost: LostDispatches;
  /** By agent, when its next success may be counted, on `performance.now()`. Connected agents are in it only after a failure. */
  readonly #successDueMs = new LRUCache<string, number>({ max: AGENTS_MAX });
  /** By agent, whether the record has failures of its handler; absent while unknown. */
  readonly #hasFailed = new LRUCache<string, boolean>({ max: AGENTS_MAX });

  /** @param closing once it is aborted, each write is tried only once */
  constructor(options: SenderOptions, closing: AbortSignal) {
    this.#options = options;
    this.#closing = closing;
    this.output = new OutputGate(options);
    this.lost = new LostDispatches(options, (work) => this.persist(work));
  }

  /** Sends a dispatch that is on the record as sent, and records its end. Never rejects. @param clock asked again before the first byte where signing takes time */
  async sendAndRecord(running: RunningDispatch, open: OpenDispatch, clock: SendClock): Promise<DispatchEnd> {
    const { transport } = running;
    if (!transport.sign) return this.#follow(running, open, () => transport.send(open, running));
    try {
      const token = await this.persist(async () => transport.sign?.(open));
      if (clock.isInTime) return await this.#follow(running, open, () => transport.send(open, running, token));
    } catch (error) {
      this.#logError(open, error, 'dispatch could not be signed');
    }
    running.enter('recording');
    return this.#record(running, open, { state: 'not_sent', reason: 'NEVER_SENT' });
  }

  /** Continues a dispatch that another node sent, and records its end. Never rejects. @param progress as for `Transport.adopt` */
  adopt(running: RunningDispatch, open: OpenDispatch, progress: string): Promise<DispatchEnd> {
    const { transport } = running;
    running.isContinued = true;
    const deliver = () => transport.adopt?.(open, progress, running) ?? Promise.resolve(LOST);
    return this.#follow(running, open, deliver);
  }

  /** Retries while the database is away. */
  persist<T>(work: () => Promise<T>): Promise<T> {
    return this.#closing.aborted ? work() : persist(work, this.#options.log, this.#closing);
  }

  async #follow(running: RunningDispatch, open: OpenDispatch, deliver: Sending): Promise<DispatchEnd> {
    const startedAtMs = performance.now();
    running.open = open;
    running.enter('sending');
    const output = this.#options.guards.isUnconcerned(open.tenant_id) ? undefined : this.output.begin(running, open);
    const delivered = await this.#resultOf(running, open, deliver);
    const isInspected = output !== undefined || !this.#options.guards.isUnconcerned(open.tenant_id);
    const result = isInspected
      ? await this.output.end(output, running, delivered, (work) => this.persist(work))
      : delivered;
    if (result.state === 'transferred') return CLOSED;
    running.enter('recording');
    const end = running.stopped === 'closed' ? CLOSED : await this.#record(running, open, result);
    this.#count(end, performance.now() - startedAtMs);
    return end;
  }

  #count({ state }: DispatchEnd, ms: number): void {
    const { counts } = this;
    const bits = MS_BITS - Math.clz32(ms);
    counts.byEnd[state] = (counts.byEnd[state] ?? 0) + 1;
    counts.byBitsOfMs[bits] = (counts.byBitsOfMs[bits] ?? 0) + 1;
    counts.ms += ms;
  }

  async #resultOf(running: RunningDispatch, open: OpenDispatch, deliver: Sending): Promise<TransportResult> {
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
    // Before the end is visible, so that a caller's next message finds the agent's health counted.
    await this.#countHealth(running, open, result);
    try {
      if (result.state === 'not_sent') return await this.lost.release(running.ref, result.reason);
      if (result.state === 'lost') return await this.lost.fail(running.ref);
      return await this.#end(running, open, result);
    } catch (error) {
      this.#logError(open, error, 'end of a dispatch could not be recorded');
      if (result.state === 'not_sent') {
        this.lost.note({ ...running.ref, nothingSent: true });
        return notSent(result.reason);
      }
    }
    try {
      const error = { code: 'INTERNAL', message: 'The result could not be stored.' };
      return (await this.persist(() => dispatches.end(open, { state: 'failed', error }, null))) ?? CLOSED;
    } catch (error) {
      this.lost.note({ ...running.ref, nothingSent: false });
      this.#logError(open, error, 'the end of a dispatch is tried again later');
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
      const end = await this.#endAndTake(open, result, epoch);
      if (end) return end;
      await transport.epochSettled?.(open);
      if (running.epoch === epoch) break; // the agent has not resumed meanwhile, so another try would give the same
    }
    const [closed] = await this.persist(() => dispatches.closedAmong([ref]));
    // The dispatch belongs to a newer connection of the agent. Unless that one continues it, it also fails the dispatch as lost.
    if (!closed) return this.lost.fail(ref);
    transport.notifyClosed?.(open, closed.state, '');
    // Perhaps this very result has closed it, and only the database's answer was lost: then nothing was published.
    bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
    return CLOSED;
  }

  /** Records a result, and has the agent's next message opened in the same transaction. */
  async #endAndTake(open: OpenDispatch, result: AnswerOrFailure, epoch: number): Promise<DispatchEnd | null> {
    const { dispatches } = this.#options;
    const { taking } = this;
    const offer = taking?.offerNext(open);
    let end: DispatchEnd | null = null;
    try {
      end = await this.persist(() => dispatches.end(open, result, epoch, offer));
      return end;
    } finally {
      taking?.sendNext(offer, open, end);
    }
  }

  /** Counts a success or failure of the agent. Never throws: a lost count only delays a change of its status. */
  async #countHealth(running: RunningDispatch, open: OpenDispatch, result: AgentResult): Promise<void> {
    const { db, log } = this.#options;
    const failed = result.state === 'lost' ? running.stopped !== 'closing' : result.health === 'failing';
    const succeeded = result.state !== 'lost' && result.health === 'well';
    try {
      if (failed) {
        this.#successDueMs.set(agentKeyOf(open), 0);
        if (await countFailure(db, open, running.epoch)) running.transport.onBecameUnhealthy?.(open, result);
      } else if (succeeded && this.#isSuccessDue(open)) await countSuccess(db, open);
      await this.#countOutcome(open, result);
    } catch (error) {
      log.warn({ err: errorMessage(error), instance_id: open.instance_id }, 'agent health could not be recorded');
    }
  }

  async #countOutcome(open: OpenDispatch, result: AgentResult): Promise<void> {
    if (result.state === 'lost' || result.state === 'not_sent') return;
    const error = result.state === 'failed' ? errorOf(result).code : null;
    const key = agentKeyOf(open);
    if (error === null ? this.#hasFailed.get(key) === false : error !== HANDLER_FAILED) return;
    this.#hasFailed.set(key, await countOutcome(this.#options.db, open, error));
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

  #logError({ tenant_id, message_id, dispatch_id }: DispatchRef, error: unknown, text: string): void {
    this.#options.log.error({ err: errorMessage(error), tenant_id, message_id, dispatch_id }, text);
  }
}
