import type { DispatchLink } from '../../../mesh/nodes/dispatch-link.js';
import { FastPath } from '../../../messages/dispatch/fast-path.js';
import { newId } from '../../../runtime/ids.js';
import { createGateway, type Gateway } from '../../setup/gateway.js';
import type { Context, Entry } from './context.js';
import { Life, partsOf } from './life.js';
import type { LossyNetwork } from './network.js';

/** A process with the role api alone: it forwards what it takes to the node that holds the agent's socket. */
export class FrontProcess implements Entry {
  readonly gateway: Gateway;
  readonly death: Promise<never>;
  readonly #life = new Life();
  readonly #id = newId('mesh');
  readonly #network: LossyNetwork;
  readonly #link: DispatchLink;

  constructor(context: Context, network: LossyNetwork) {
    const parts = partsOf(context, this.#life);
    this.death = this.#life.death;
    this.#network = network;
    this.#link = network.link(this.#id, parts.dispatches);
    const fastPath = new FastPath({ ...parts, runner: null, forwarder: this.#link, supervise: async () => undefined });
    void fastPath.stop(); // it hands nothing over: the node does
    this.gateway = createGateway(parts.core, fastPath);
  }

  get alive(): boolean {
    return this.#life.alive;
  }

  kill(): void {
    this.#life.alive = false;
    this.#network.leave(this.#id);
    this.#link.close();
    this.#life.end();
  }
}
