import type { FrameErrorCode } from '../../contracts/errors.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import type { Dispatches, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { errorMessage } from '../../runtime/errors.js';
import { uuidOf } from '../../runtime/ids.js';
import type { Logger } from '../../runtime/logger.js';
import type { Outbound } from '../../http/outbound.js';
import type { TokenIssuer } from '../../auth/tokens.js';
import type { AgentHealth } from '../connected/agent-health.js';
import { closedWith, type DispatchEnd } from '../dispatcher.js';
import { HostedCall } from './call.js';
import type { Conclusion } from './conclusion.js';
import { exchange, type PollPace } from './exchange.js';
import type { Flight } from './in-flight.js';
import { HostedProgress } from './progress.js';
import type { HostedRecovery } from './recovery.js';
import { persist } from '../persistence.js';

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
  async deliver(flight: Flight): Promise<DispatchEnd> {
    const { dispatches, outbound, tokens, meshId } = this.#options;
    const open = await this.#persist(() => dispatches.find(flight.ref));
    if (!open) return CLOSED;
    if (open.sent_at !== null) return this.#unknownHere(flight, open);
    // Signed before it is marked as sent, so that a failure to sign leaves it unsent.
    const token = await this.#persist(() => new HostedCall(open, outbound, tokens).token());
    if (flight.stoppedBy === 'closing') return { kind: 'not_sent', reason: 'CLOSING' };
    const sent = await this.#persist(() => dispatches.markSent(flight.ref, { mesh_id: meshId, epoch: open.epoch }));
    return sent ? this.#send(flight, sent, token) : this.#unmarked(flight);
  }

  /** As `deliver`, of a dispatch that is on the record as sent. */
  async deliverSent(flight: Flight, open: OpenDispatch, mayGoOut: () => boolean): Promise<DispatchEnd> {
    const { outbound, tokens } = this.#options;
    let token: string;
    try {
      token = await this.#persist(() => new HostedCall(open, outbound, tokens).token());
    } catch (error) {
      this.#options.log.warn(
        { err: errorMessage(error), dispatch_id: open.dispatch_id },
        'dispatch could not be signed',
      );
      return this.#giveBack(flight);
    }
    return flight.stoppedBy || !mayGoOut() ? this.#giveBack(flight) : this.#send(flight, open, token);
  }

  /** On the record as sent, and not in flight here: this node knows whether it was; one that is gone may have sent it. */
  #unknownHere(flight: Flight, open: OpenDispatch): Promise<DispatchEnd> {
    const never = open.mesh_id === this.#options.meshId && !this.#options.hasSent(open.dispatch_id);
    return never ? this.#giveBack(flight) : this.#lose(flight);
  }

  /** Nothing went out: the message is routed again. Tried once where the process is closing. */
  async #giveBack(flight: Flight): Promise<DispatchEnd> {
    const { dispatches, closing } = this.#options;
    const takeBack = () => dispatches.takeBack(flight.ref, NEVER_SENT.reason, { neverOpened: true });
    await (closing.aborted ? takeBack() : this.#persist(takeBack));
    return NEVER_SENT;
  }

  /** It was not marked: it has ended, or belongs to a newer registration, or a lost reply hid that it was marked. */
  async #unmarked(flight: Flight): Promise<DispatchEnd> {
    const open = await this.#persist(() => this.#options.dispatches.find(flight.ref));
    if (!open) return CLOSED;
    return open.sent_at === null ? { kind: 'not_sent', reason: 'NOT_CURRENT' } : this.#unknownHere(flight, open);
  }

  /** Sent by a process that is gone: the agent may have done it, so it is not sent again. */
  async #lose(flight: Flight): Promise<DispatchEnd> {
    flight.over(await this.#persist(() => this.#options.dispatches.lose(flight.ref, 'AGENT_DISCONNECTED')));
    return CLOSED;
  }

  async #send(flight: Flight, sent: OpenDispatch, token: string): Promise<DispatchEnd> {
    const { outbound, tokens, bus, pace, log } = this.#options;
    const call = new HostedCall(sent, outbound, tokens);
    const publish = bus.publish.bind(bus, sent.tenant_id, sent.message_id);
    const progress = new HostedProgress(uuidOf(sent.dispatch_id), publish);
    flight.wentOut = true;
    const deadline = setTimeout(() => flight.stop('deadline'), sent.payload.deadline_ms);
    try {
      return await this.#conclude(flight, sent, await exchange(token, { call, progress, signal: flight.signal, pace }));
    } catch (error) {
      if (flight.stoppedBy) return await this.#stopped(flight, call, progress.taskId);
      log.error({ err: errorMessage(error), dispatch_id: sent.dispatch_id }, 'hosted dispatch failed inside the mesh');
      return await this.#fail(flight, sent, 'INTERNAL', 'The platform failed while it waited for the agent.');
    } finally {
      clearTimeout(deadline);
    }
  }

  async #conclude(flight: Flight, sent: OpenDispatch, conclusion: Conclusion): Promise<DispatchEnd> {
    const { dispatches, health, recovery, log } = this.#options;
    if (conclusion.kind === 'answered') {
      const closed = await this.#persist(() => dispatches.accept(sent, sent.epoch, conclusion.outcome));
      if (closed.end || !closed.accepted) flight.over(closed.end);
      await health.succeeded(sent);
      return closedWith(closed.end);
    }
    if (conclusion.kind === 'failed') {
      const isUnhealthy = conclusion.failing && (await health.failed(sent, sent.epoch));
      // What a connection that opens disproves; an agent that answers 5xx is left to the watch.
      if (isUnhealthy && conclusion.code === 'AGENT_DISCONNECTED') recovery.begin(sent);
      return this.#fail(flight, sent, conclusion.code, conclusion.message);
    }
    if (await health.failed(sent, sent.epoch)) recovery.begin(sent);
    const { dispatch_id, instance_id } = sent;
    log.info({ dispatch_id, instance_id, cause: conclusion.cause }, 'hosted agent not reached');
    const taken = await this.#persist(() => dispatches.takeBack(sent, NOT_REACHED.reason, { neverOpened: true }));
    return taken ? NOT_REACHED : CLOSED;
  }

  async #stopped(flight: Flight, call: HostedCall, taskId: string | undefined): Promise<DispatchEnd> {
    flight.farewell = this.#sayCanceled(call, taskId);
    if (flight.stoppedBy === 'closing') {
      flight.over(await this.#options.dispatches.lose(flight.ref, 'AGENT_DISCONNECTED'));
    }
    if (flight.stoppedBy === 'canceled') flight.over(null);
    if (flight.stoppedBy === 'deadline') {
      await this.#options.health.failed(call.open, call.open.epoch);
      await this.#fail(flight, call.open, 'DEADLINE_EXCEEDED', 'The agent did not answer in time.');
    }
    return CLOSED;
  }

  async #fail(flight: Flight, sent: OpenDispatch, code: FrameErrorCode, message: string): Promise<DispatchEnd> {
    const closed = await this.#persist(() => this.#options.dispatches.fail(sent, { code, message }, sent.epoch));
    flight.over(closed.end);
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
