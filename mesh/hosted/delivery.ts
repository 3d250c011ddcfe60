import type { TokenIssuer } from '../../auth/tokens.js';
import type { FrameErrorCode } from '../../contracts/errors.js';
import type { Outbound } from '../../http/outbound.js';
import type { Dispatches, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import { errorMessage } from '../../runtime/errors.js';
import { uuidOf } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import type { AgentHealth } from '../connected/agent-health.js';
import { closedWith, type DispatchEnd } from '../dispatcher.js';
import { persist } from '../persistence.js';
import { HostedCall } from './call.js';
import type { Conclusion } from './conclusion.js';
import { exchange, type PollPace } from './exchange.js';
import type { HostedRun } from './in-flight.js';
import { HostedProgress } from './progress.js';
import type { HostedRecovery } from './recovery.js';

const CLOSED: DispatchEnd = { kind: 'closed' };
const NEVER_SENT = { kind: 'not_sent', reason: 'NEVER_SENT' } as const;
/** Routing knows this reason: such an instance comes last for the message. */
const NOT_REACHED = { kind: 'not_sent', reason: 'CONNECT_FAILED' } as const;

interface DeliveryOptions {
  dispatches: Dispatches;
  bus: Pick<ChunkBus, 'publish'>;
  outbound: Pick<Outbound, 'request' | 'stream'>;
  tokens: Pick<TokenIssuer, 'issueDispatchToken'>;
  health: AgentHealth;
  recovery: HostedRecovery;
  log: Logger;
  /** The node that owns what is sent here. */
  meshId: string;
  pace: PollPace;
  /** Ends the waiting for an absent database. */
  closing: AbortSignal;
  /** Whether a dispatch that is not in flight any more went out from here. */
  hasSent(dispatchId: string): boolean;
}

/** Brings one dispatch to a hosted agent and its end to the database. */
export class HostedDelivery {
  readonly #options: DeliveryOptions;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** @throws what the database says to work that it refuses for good; then nothing is known here of the dispatch's end */
  async deliver(run: HostedRun): Promise<DispatchEnd> {
    const { dispatches, outbound, tokens, meshId } = this.#options;
    const open = await this.#persist(() => dispatches.find(run.ref));
    if (!open) return CLOSED;
    if (open.sent_at !== null) return this.#unknownHere(run, open);
    // Signed before it is marked as sent, so that a failure to sign leaves it unsent.
    const token = await this.#persist(() => new HostedCall(open, outbound, tokens).token());
    if (run.stoppedBy === 'closing') return { kind: 'not_sent', reason: 'CLOSING' };
    const sent = await this.#persist(() => dispatches.markSent(run.ref, { mesh_id: meshId, epoch: open.epoch }));
    return sent ? this.#send(run, sent, token) : this.#unmarked(run);
  }

  /** As `deliver`, of a dispatch that is on the record as sent. */
  async deliverSent(run: HostedRun, open: OpenDispatch, leaseValid: () => boolean): Promise<DispatchEnd> {
    const { outbound, tokens } = this.#options;
    let token: string;
    try {
      token = await this.#persist(() => new HostedCall(open, outbound, tokens).token());
    } catch (error) {
      this.#options.log.warn(
        { err: errorMessage(error), dispatch_id: open.dispatch_id },
        'dispatch could not be signed',
      );
      return this.#release(run);
    }
    return run.stoppedBy || !leaseValid() ? this.#release(run) : this.#send(run, open, token);
  }

  /** On the record as sent, and not in flight here: this node knows whether it was; one that is gone may have sent it. */
  #unknownHere(run: HostedRun, open: OpenDispatch): Promise<DispatchEnd> {
    const never = open.mesh_id === this.#options.meshId && !this.#options.hasSent(open.dispatch_id);
    return never ? this.#release(run) : this.#failAsLost(run);
  }

  /** Nothing went out: the message is routed again. Tried once where the process is closing. */
  async #release(run: HostedRun): Promise<DispatchEnd> {
    const { dispatches, closing } = this.#options;
    const release = () => dispatches.release(run.ref, NEVER_SENT.reason, { nothingSent: true });
    await (closing.aborted ? release() : this.#persist(release));
    return NEVER_SENT;
  }

  /** It was not marked: it has ended, or belongs to a newer registration, or a lost reply hid that it was marked. */
  async #unmarked(run: HostedRun): Promise<DispatchEnd> {
    const open = await this.#persist(() => this.#options.dispatches.find(run.ref));
    if (!open) return CLOSED;
    return open.sent_at === null ? { kind: 'not_sent', reason: 'NOT_CURRENT' } : this.#unknownHere(run, open);
  }

  /** Sent by a process that is gone: the agent may have done it, so it is not sent again. */
  async #failAsLost(run: HostedRun): Promise<DispatchEnd> {
    run.over(await this.#persist(() => this.#options.dispatches.failAsLost(run.ref, 'AGENT_DISCONNECTED')));
    return CLOSED;
  }

  async #send(run: HostedRun, sent: OpenDispatch, token: string): Promise<DispatchEnd> {
    const { outbound, tokens, bus, pace, log } = this.#options;
    const call = new HostedCall(sent, outbound, tokens);
    const publish = bus.publish.bind(bus, sent.tenant_id, sent.message_id);
    const progress = new HostedProgress(uuidOf(sent.dispatch_id), publish);
    run.wentOut = true;
    const deadline = setTimeout(() => run.stop('deadline'), sent.payload.deadline_ms);
    try {
      return await this.#conclude(run, sent, await exchange(token, { call, progress, signal: run.signal, pace }));
    } catch (error) {
      if (run.stoppedBy) return await this.#stopped(run, call, progress.taskId);
      log.error({ err: errorMessage(error), dispatch_id: sent.dispatch_id }, 'hosted dispatch failed inside the mesh');
      return await this.#fail(run, sent, 'INTERNAL', 'The platform failed while it waited for the agent.');
    } finally {
      clearTimeout(deadline);
    }
  }

  async #conclude(run: HostedRun, sent: OpenDispatch, conclusion: Conclusion): Promise<DispatchEnd> {
    const { dispatches, health, recovery, log } = this.#options;
    if (conclusion.kind === 'answered') {
      const closed = await this.#persist(() => dispatches.accept(sent, sent.epoch, conclusion.outcome));
      if (closed.end || !closed.accepted) run.over(closed.end);
      await health.succeeded(sent);
      return closedWith(closed.end);
    }
    if (conclusion.kind === 'failed') {
      const isUnhealthy = conclusion.failing && (await health.failed(sent, sent.epoch));
      // What a connection that opens disproves; an agent that answers 5xx is left to the watch.
      if (isUnhealthy && conclusion.code === 'AGENT_DISCONNECTED') recovery.begin(sent);
      return this.#fail(run, sent, conclusion.code, conclusion.message);
    }
    if (await health.failed(sent, sent.epoch)) recovery.begin(sent);
    const { dispatch_id, instance_id } = sent;
    log.info({ dispatch_id, instance_id, cause: conclusion.cause }, 'hosted agent not reached');
    const taken = await this.#persist(() => dispatches.release(sent, NOT_REACHED.reason, { nothingSent: true }));
    return taken ? NOT_REACHED : CLOSED;
  }

  async #stopped(run: HostedRun, call: HostedCall, taskId: string | undefined): Promise<DispatchEnd> {
    run.cancelSent = this.#sayCanceled(call, taskId);
    if (run.stoppedBy === 'closing') {
      run.over(await this.#options.dispatches.failAsLost(run.ref, 'AGENT_DISCONNECTED'));
    }
    if (run.stoppedBy === 'canceled') run.over(null);
    if (run.stoppedBy === 'deadline') {
      await this.#options.health.failed(call.open, call.open.epoch);
      await this.#fail(run, call.open, 'DEADLINE_EXCEEDED', 'The agent did not answer in time.');
    }
    return CLOSED;
  }

  async #fail(run: HostedRun, sent: OpenDispatch, code: FrameErrorCode, message: string): Promise<DispatchEnd> {
    const closed = await this.#persist(() => this.#options.dispatches.fail(sent, { code, message }, sent.epoch));
    run.over(closed.end);
    return closedWith(closed.end);
  }

  /** Best effort: the agent's answer is not taken any more, whether it hears of that or not. */
  async #sayCanceled(call: HostedCall, taskId: string | undefined): Promise<void> {
    if (taskId === undefined) return;
    try {
      await call.ask('cancel', taskId);
    } catch (error) {
      const { dispatch_id, instance_id } = call.open;
      this.#options.log.info({ err: errorMessage(error), dispatch_id, instance_id }, 'hosted agent not told to cancel');
    }
  }

  #persist<T>(work: () => Promise<T>): Promise<T> {
    return persist(work, this.#options.log, this.#options.closing);
  }
}
