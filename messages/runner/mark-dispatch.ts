import type { DispatchEnd, Dispatches, DispatchRef, OpenDispatch } from '../dispatch/dispatches.js';
import { CLOSED, notSent } from './lost-dispatches.js';
import type { RunningDispatch, RunningDispatches } from './running-dispatches.js';
import type { Saturation } from './saturation.js';
import type { DispatchSender } from './send-dispatch.js';
import type { Destination, Transport } from './transport.js';

/** A dispatch as the workflow of its message knows it. */
export interface RoutedDispatch extends DispatchRef {
  deployment_mode: OpenDispatch['deployment_mode'];
  instance_id?: string;
}

export interface MarkerOptions {
  dispatches: Pick<Dispatches, 'find' | 'markSent'>;
  sender: DispatchSender;
  running: RunningDispatches;
  saturation: Pick<Saturation, 'mark'>;
  meshId: string;
}

/** Marks dispatches of the workflow path as sent, and has them sent. */
export class DispatchMarker {
  readonly #options: MarkerOptions;

  constructor(options: MarkerOptions) {
    this.#options = options;
  }

  /** Marks a dispatch as sent and sends it. Rejects only when nothing was sent. */
  async markAndSend(running: RunningDispatch, { tenant_id, instance_id }: RoutedDispatch): Promise<DispatchEnd> {
    const { ref, transport } = running;
    const { sender } = this.#options;
    if (instance_id !== undefined && !sender.lost.isUnrecorded(ref.dispatch_id)) {
      // Saves a query when the agent can be reached: marking as sent checks the rest.
      const agent = { tenant_id, instance_id, epoch: null };
      await transport.connecting?.(agent);
      const reached = this.#reach(transport, agent);
      if ('epoch' in reached) return this.#mark(running, agent, reached.epoch);
    }
    const open = await this.#find(ref);
    if (!open) return CLOSED;
    if (open.sent_at !== null) return sender.lost.disown(open, { unlessOffered: true });
    await transport.connecting?.(open);
    const reached = this.#reach(transport, open);
    if ('epoch' in reached) return this.#mark(running, open, reached.epoch);
    // Before the message is routed again, so that it goes to another.
    if (reached.refusal === 'AGENT_BUSY') await this.#options.saturation.mark(open);
    return notSent(reached.refusal);
  }

  #reach(transport: Transport, agent: Destination): { epoch: number } | { refusal: string } {
    return this.#options.running.isFull(agent) ? { refusal: 'AGENT_BUSY' } : transport.reach(agent);
  }

  async #mark(running: RunningDispatch, agent: Destination, epoch: number): Promise<DispatchEnd> {
    const { ref } = running;
    const { dispatches, sender, meshId } = this.#options;
    this.#options.running.assign(running, agent, epoch);
    // Signed before it is marked as sent, so that a failure to sign leaves it unsent.
    const token = running.transport.sign && (await sender.sign(running, { ...agent, ...ref }));
    if (running.stopped === 'closing') return notSent('CLOSING');
    const sent = await sender.persist(() => dispatches.markSent(ref, { mesh_id: meshId, epoch }));
    if (sent) return sender.send(running, sent, token);
    // It has ended, or the agent has another epoch, or a commit whose answer was lost has marked it.
    const open = await this.#find(ref);
    if (!open) return CLOSED;
    return open.sent_at === null ? notSent('CONNECTION_REPLACED') : sender.lost.disown(open, { unlessOffered: true });
  }

  #find(ref: DispatchRef): Promise<OpenDispatch | null> {
    return this.#options.sender.persist(() => this.#options.dispatches.find(ref));
  }
}
