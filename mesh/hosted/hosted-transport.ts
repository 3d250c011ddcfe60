import { AGENT_NOT_READY } from '../../contracts/errors.js';
import type { AgentResult, Dispatches, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import type { Destination, DispatchStop, Transport } from '../../messages/runner/transport.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import { uuidOf } from '../../runtime/ids.js';
import type { SpanRecorder } from '../../telemetry/traces/span-recorder.js';
import { recordStream } from '../connected/stream-span.js';
import { DispatchDeadline } from '../dispatch-deadline.js';
import { awaitResult, type PollPace } from './await-result.js';
import { HostedCall, type HostedClient } from './call.js';
import { failed } from './failures.js';
import { HostedProgress } from './progress.js';
import { HostedRecovery, type RecoveryOptions } from './recovery.js';

export interface HostedTransportOptions extends HostedClient, RecoveryOptions {
  bus: Pick<ChunkBus, 'publish'>;
  changes: Pick<ChunkBus, 'subscribe'>;
  dispatches: Pick<Dispatches, 'deadlineLeft'>;
  spans: SpanRecorder;
  /** How often an unfinished task of an agent is asked for. */
  pace?: PollPace;
}

function isNotReady(result: AgentResult): boolean {
  return result.state === 'not_sent' && result.reason === AGENT_NOT_READY;
}

/** Carries dispatches to hosted agents over HTTP. */
export class HostedTransport implements Transport {
  readonly #options: HostedTransportOptions;
  readonly #recovery: HostedRecovery;
  /** Requests that cancel the tasks of aborted dispatches, by dispatch. */
  readonly #cancels = new Map<string, Promise<void>>();

  constructor(options: HostedTransportOptions) {
    this.#options = options;
    this.#recovery = new HostedRecovery(options);
  }

  epochOf({ epoch }: Destination): number | null {
    return epoch;
  }

  sign(dispatch: Pick<OpenDispatch, 'tenant_id' | 'instance_id' | 'dispatch_id'>): Promise<string> {
    return this.#options.tokens.issueDispatchToken(dispatch);
  }

  async send(open: OpenDispatch, stop: DispatchStop, token = ''): Promise<AgentResult> {
    const { bus, log, pace } = this.#options;
    const { dispatch_id, instance_id } = open;
    const call = new HostedCall(open, this.#options);
    const publish = bus.publish.bind(bus, open.tenant_id, open.message_id);
    const progress = new HostedProgress(uuidOf(dispatch_id), publish);
    const request = new AbortController();
    const abort = (): void => request.abort();
    stop.onStop(abort);
    const deadline = new DispatchDeadline(open, performance.now() + open.payload.deadline_ms, this.#options, abort);
    try {
      const result = await awaitResult(token, { call, progress, signal: request.signal, pace });
      if (isNotReady(result)) log.info({ dispatch_id, instance_id }, 'hosted agent is not ready');
      else if (result.state === 'not_sent')
        log.info({ dispatch_id, instance_id, cause: result.cause }, 'hosted agent cannot be reached');
      return result;
    } catch (error) {
      if (!request.signal.aborted) throw error;
      this.#cancel(call, progress.taskId);
      if (stop.stopped) return call.hasBegun ? { state: 'lost' } : { state: 'not_sent', reason: 'NEVER_SENT' };
      return failed('DEADLINE_EXCEEDED', 'The agent did not answer in time.', 'failing');
    } finally {
      deadline.stop();
      recordStream(this.#options.spans, open, progress.streamed);
    }
  }

  async cancelSent(dispatchId: string): Promise<void> {
    await this.#cancels.get(dispatchId);
  }

  /**
   * Tries to reconnect after a refused or broken connection, because a connection that opens shows that the agent is
   * back. An agent that answers 5xx is left to the periodic check.
   */
  onBecameUnhealthy(open: OpenDispatch, result: AgentResult): void {
    const isLoss = result.state === 'failed' && result.is_loss;
    if (isLoss || (result.state === 'not_sent' && !isNotReady(result))) this.#recovery.begin(open);
  }

  #cancel(call: HostedCall, taskId: string | undefined): void {
    const { dispatch_id } = call.open;
    const sent = call.cancel(taskId, this.#options.log).finally(() => this.#cancels.delete(dispatch_id));
    this.#cancels.set(dispatch_id, sent);
  }
}
