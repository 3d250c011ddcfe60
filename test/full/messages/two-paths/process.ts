import type { DispatchLink } from '../../../../mesh/nodes/dispatch-link.js';
import { removeNode, sweepDeadNodes } from '../../../../mesh/nodes/node.js';
import { FastPath } from '../../../../messages/dispatch/fast-path.js';
import { DEFAULT_CLOCKS } from '../../../../runtime/clocks.js';
import { newId } from '../../../../runtime/ids.js';
import type { MeshNodeUnderTest } from '../../../mesh/mesh-fixture.js';
import { createGateway, type Gateway } from '../../../setup/gateway.js';
import { type Context, type Entry, Life, partsOf } from './life.js';
import type { LossyNetwork } from './network.js';

/** How a process that takes a message has it done. `forwarded`: by a dispatch that it forwards to the node that holds the socket. */
export type Way = 'fast path' | 'forwarded' | 'workflow path';

/** One process of the platform with the roles api and mesh. When it dies, nothing it holds in memory reaches anybody any more. */
export class PlatformProcess implements Entry {
  readonly node: MeshNodeUnderTest;
  /** With the fast path, or without it. */
  readonly gateway: Gateway;
  readonly life: Life;
  readonly #fastPath: FastPath;
  readonly #link: DispatchLink | undefined;
  readonly #context: Context;

  private constructor(
    context: Context,
    life: Life,
    node: MeshNodeUnderTest,
    parts: ReturnType<typeof partsOf>,
    way: Way,
  ) {
    this.#context = context;
    this.life = life;
    this.node = node;
    this.#fastPath = new FastPath({
      ...parts,
      runner: node.runner,
      forwarder: null,
      supervise: async (ref) => {
        life.check();
        context.workflowStarter.message(ref);
      },
    });
    this.#link = context.network?.link(node.meshId, parts.dispatches);
    this.#link?.serve({
      take: (open, elapsedMs) => {
        const ended = this.#fastPath.take(open, elapsedMs);
        if (ended !== null) context.taken(open.dispatch_id, Promise.race([ended, life.death]));
        return ended;
      },
      refusalKnown: (open) => this.#fastPath.refusalKnown(open),
    });
    this.gateway = createGateway(parts.core, way === 'workflow path' ? null : this.#fastPath);
  }

  static async start(context: Context, way: Way): Promise<PlatformProcess> {
    const life = new Life();
    const parts = partsOf(context, life);
    const { reconcileMs } = DEFAULT_CLOCKS;
    const { dispatches, core } = parts;
    const node = await context.fixture.node({ dispatches, db: core.db, clocks: { reconcileMs } });
    return new PlatformProcess(context, life, node, parts, way);
  }

  /** The others take it for dead: its row goes, and its agents are off the routes. */
  async presumeDead(): Promise<void> {
    const { meshId } = this.node;
    await this.#context.fixture.core.db.system(async (tx) => {
      await removeNode(tx, meshId);
      await sweepDeadNodes(tx, meshId, DEFAULT_CLOCKS.deadNodeMs);
    });
  }

  async kill(): Promise<void> {
    this.life.alive = false;
    this.#context.network?.leave(this.node.meshId);
    this.#link?.close();
    await this.presumeDead();
    this.life.end();
    await this.#fastPath.stop();
    // Gives its port and timers back; what it still tries to write fails.
    void this.node.server.close();
  }
}

/** A process with the role api alone: it forwards what it takes to the node that holds the agent's socket. */
export class FrontProcess implements Entry {
  readonly gateway: Gateway;
  readonly life = new Life();
  readonly #id = newId('mesh');
  readonly #network: LossyNetwork;
  readonly #link: DispatchLink;

  constructor(context: Context, network: LossyNetwork) {
    const parts = partsOf(context, this.life);
    this.#network = network;
    this.#link = network.link(this.#id, parts.dispatches);
    const fastPath = new FastPath({ ...parts, runner: null, forwarder: this.#link, supervise: async () => undefined });
    void fastPath.stop(); // it hands nothing over: the node does
    this.gateway = createGateway(parts.core, fastPath);
  }

  kill(): void {
    this.life.alive = false;
    this.#network.leave(this.#id);
    this.#link.close();
    this.life.end();
  }
}
