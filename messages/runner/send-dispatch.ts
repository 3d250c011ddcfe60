import { agentKeyOf } from '../../agents/agent-row.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { AgentResult, DispatchEnd, Dispatches, DispatchRef, OpenDispatch } from '../dispatch/dispatches.js';
import { CLOSED, notSent, type ResultRecorder } from './record-result.js';
import type { RunningDispatch, RunningDispatches } from './running-dispatches.js';
import type { Destination } from './transport.js';

/** A dispatch as the workflow of its message knows it. */
export interface RoutedDispatch extends DispatchRef {
  deployment_mode: OpenDispatch['deployment_mode'];
  instance_id?: string;
}

export interface SenderOptions {
  dispatches: Pick<Dispatches, 'find' | 'markSent'>;
  recorder: ResultRecorder;
  running: RunningDispatches;
  log: Pick<Logger, 'error'>;
  meshId: string;
}

/** Brings one dispatch from the record to its transport, and the result back to the record. */
export class DispatchSender {
  readonly #options: SenderOptions;
  readonly #recorder: ResultRecorder;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#recorder = options.recorder;
  }

  /** Marks a dispatch of the workflow path as sent and sends it. Rejects only when nothing was sent. */
  async markAndSend(running: RunningDispatch, { tenant_id, instance_id }: RoutedDispatch): Promise<DispatchEnd> {
    const { ref, transport } = running;
    if (instance_id !== undefined && !this.#recorder.isUnrecorded(ref.dispatch_id)) {
      // Saves a query when the agent can be reached: marking as sent checks the rest.
      const agent = { tenant_id, instance_id, epoch: null };
      await transport.connecting?.(agent);
      const reached = transport.reach(agent);
      if ('epoch' in reached) return this.#mark(running, agent, reached.epoch);
    }
    const open = await this.#find(ref);
    if (!open) return CLOSED;
    if (open.sent_at !== null) return this.#recorder.disown(open);
    await transport.connecting?.(open);
    const reached = transport.reach(open);
    return 'epoch' in reached ? this.#mark(running, open, reached.epoch) : notSent(reached.refusal);
  }

  /** Sends a dispatch that the accept transaction has marked as sent. Never rejects. */
  async sendMarked(running: RunningDispatch, open: OpenDispatch, leaseValid: () => boolean): Promise<DispatchEnd> {
    const { sign } = running.transport;
    if (!sign) return this.#send(running, open);
    try {
      const token = await this.#sign(running, open);
      if (leaseValid()) return await this.#send(running, open, token);
    } catch (error) {
      this.#logError(open, error, 'dispatch could not be signed');
    }
    running.enter('recording');
    return this.#recorder.record(running, open, { state: 'not_sent', reason: 'NEVER_SENT' });
  }

  async #mark(running: RunningDispatch, agent: Destination, epoch: number): Promise<DispatchEnd> {
    const { ref } = running;
    const { dispatches, meshId } = this.#options;
    this.#options.running.assign(running, agentKeyOf(agent), epoch);
    // Signed before it is marked as sent, so that a failure to sign leaves it unsent.
    const token = running.transport.sign && (await this.#sign(running, { ...agent, ...ref }));
    if (running.stopped === 'closing') return notSent('CLOSING');
    const sent = await this.#recorder.persist(() => dispatches.markSent(ref, { mesh_id: meshId, epoch }));
    if (sent) return this.#send(running, sent, token);
    // It has ended, or the agent has another epoch, or a commit whose answer was lost has marked it.
    const open = await this.#find(ref);
    if (!open) return CLOSED;
    return open.sent_at === null ? notSent('CONNECTION_REPLACED') : this.#recorder.disown(open);
  }

  #find(ref: DispatchRef): Promise<OpenDispatch | null> {
    return this.#recorder.persist(() => this.#options.dispatches.find(ref));
  }

  #sign({ transport }: RunningDispatch, dispatch: DispatchRef & { instance_id: string }): Promise<string | undefined> {
    return this.#recorder.persist(async () => transport.sign?.(dispatch));
  }

  async #send(running: RunningDispatch, open: OpenDispatch, token?: string): Promise<DispatchEnd> {
    running.open = open;
    running.enter('sending');
    const result = await this.#resultOf(running, open, token);
    running.enter('recording');
    return running.stopped === 'closed' ? CLOSED : this.#recorder.record(running, open, result);
  }

  async #resultOf(running: RunningDispatch, open: OpenDispatch, token?: string): Promise<AgentResult> {
    if (running.stopped) return { state: 'not_sent', reason: 'AGENT_DISCONNECTED' };
    try {
      return await running.transport.send(open, running.signal, token);
    } catch (error) {
      this.#logError(open, error, 'transport failed');
      const message = 'The platform failed while it waited for the agent.';
      return { state: 'failed', error: { code: 'INTERNAL', message } };
    }
  }

  #logError({ dispatch_id }: DispatchRef, error: unknown, text: string): void {
    this.#options.log.error({ err: errorMessage(error), dispatch_id }, text);
  }
}
