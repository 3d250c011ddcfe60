import { removeNode, sweepDeadNodes } from '../../../mesh/nodes/mesh-nodes.js';
import type { Db } from '../../../db/pool.js';
import { createLocalMesh } from '../../../mesh/local.js';
import { Reservations } from '../../../mesh/reservations.js';
import { DEFAULT_TIMINGS } from '../../../mesh/connection/timings.js';
import type { MessageCore, Waker } from '../../../messages/core.js';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import type { Closed, Dispatches } from '../../../messages/dispatch/dispatches.js';
import { createGateway, type Gateway } from '../../../messages/gateway.js';
import { ShortWay } from '../../../messages/dispatch/fast-path.js';
import type { MeshBench, MeshNodeUnderTest } from '../../mesh/mesh-bench.js';
import type { Faults } from './faults.js';

/** What all work of a process that is dead fails with. */
export class DeadProcess extends Error {}

/** What processes share. */
export interface Ground {
  bench: MeshBench;
  waker: Waker;
  faults: Faults;
  /** Told of every answer that was taken. */
  accepted(dispatchId: string): void;
}

/** One process of the platform with the roles api and mesh. When it dies, nothing it holds in memory reaches anybody any more. */
export class PlatformProcess {
  readonly node: MeshNodeUnderTest;
  /** With the short way, or without it. */
  readonly gateway: Gateway;
  /** Rejects with DeadProcess. */
  readonly death: Promise<never>;
  readonly #shortWay: ShortWay;
  readonly #ground: Ground;
  readonly #life: Life;

  private constructor(ground: Ground, life: Life, node: MeshNodeUnderTest, parts: Parts, short: boolean) {
    const { core, dispatches, reservations } = parts;
    this.#ground = ground;
    this.#life = life;
    this.node = node;
    this.death = life.death;
    const mesh = createLocalMesh({
      meshId: node.meshId,
      reservations,
      connected: node.dispatcher,
      hosted: node.dispatcher, // there is no hosted agent
      isDraining: () => node.server.isDraining,
    });
    this.#shortWay = new ShortWay({
      core,
      dispatches,
      mesh,
      supervise: async (ref) => {
        life.check();
        ground.waker.message(ref);
      },
    });
    this.gateway = createGateway(core, () => (short ? this.#shortWay : null));
  }

  static async start(ground: Ground, short: boolean): Promise<PlatformProcess> {
    const life = new Life();
    const { bench, waker, faults } = ground;
    const db = mortal(bench.core.db, life, faults);
    const core: MessageCore = {
      ...bench.core,
      db,
      waker: { ...waker, message: (ref) => life.alive && waker.message(ref) },
    };
    const parts = {
      core,
      dispatches: breakable(createDispatches(core), life, ground),
      reservations: new Reservations(),
    };
    const { reconcileMs } = DEFAULT_TIMINGS;
    const node = await bench.node({ ...parts, db, timings: { reconcileMs } });
    return new PlatformProcess(ground, life, node, parts, short);
  }

  get alive(): boolean {
    return this.#life.alive;
  }

  /** The others take it for dead: its row goes, and its agents are off the routes. */
  async presumeDead(): Promise<void> {
    const { meshId } = this.node;
    await this.#ground.bench.core.db.system(async (tx) => {
      await removeNode(tx, meshId);
      await sweepDeadNodes(tx, DEFAULT_TIMINGS.deadNodeMs);
    });
  }

  async kill(): Promise<void> {
    this.#life.alive = false;
    await this.presumeDead();
    this.#life.end();
    await this.#shortWay.stop();
    // Gives its port and timers back; what it still tries to write fails.
    void this.node.server.close();
  }
}

interface Parts {
  core: MessageCore;
  dispatches: Dispatches;
  reservations: Reservations;
}

class Life {
  alive = true;
  end: () => void = () => undefined;
  readonly death = new Promise<never>((_, reject) => {
    this.end = () => reject(new DeadProcess('the process is dead'));
  });

  constructor() {
    this.death.catch(() => undefined); // whoever waits for it hears of it
  }

  check(): void {
    if (!this.alive) throw new DeadProcess('the process is dead');
  }

  async living<T>(work: () => Promise<T>): Promise<T> {
    this.check();
    const result = await work();
    this.check();
    return result;
  }
}

/** The database as a process reaches it that may die, also between the commit of T1 and its answer. */
function mortal(db: Db, life: Life, faults: Faults): Db {
  return {
    tenant: (tenantId, work) => life.living(() => db.tenant(tenantId, work)),
    system: (work) => life.living(() => db.system(work)),
    call: (name, text, values) => life.living(() => db.call(name, text, values)),
    gather: (statement, call) =>
      life.living(async () => {
        const row = await db.gather(statement, call);
        const { verdict, its_message } = row as { verdict?: string; its_message?: string };
        if (verdict === 'dispatched' && its_message) await faults.at('T1', its_message);
        return row as never;
      }),
    close: () => db.close(),
  };
}

/** The transactions of a dispatch's life, with the points at which something goes wrong around them. */
function breakable(dispatches: Dispatches, life: Life, { faults, accepted }: Ground): Dispatches {
  const ending = (messageId: string, work: () => Promise<Closed>, dispatchId: string) =>
    life.living(async () => {
      await faults.at('ending', messageId);
      const closed = await life.living(work);
      if (closed.accepted) accepted(dispatchId);
      await faults.at('ended', messageId);
      return closed;
    });
  return {
    ...dispatches,
    markSent: (ref, owner) =>
      life.living(async () => {
        const sent = await dispatches.markSent(ref, owner);
        if (sent) await faults.at('marked', ref.message_id);
        return sent;
      }),
    accept: (open, epoch, outcome) =>
      ending(open.message_id, () => dispatches.accept(open, epoch, outcome), open.dispatch_id),
    fail: (ref, error, epoch) => ending(ref.message_id, () => dispatches.fail(ref, error, epoch), ref.dispatch_id),
  };
}
