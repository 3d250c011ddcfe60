import type { Db } from '../../../db/pool.js';
import { DEFAULT_TIMINGS } from '../../../mesh/connection/timings.js';
import { removeNode, sweepDeadNodes } from '../../../mesh/nodes/node.js';
import type { MessageCore, WorkflowStarter } from '../../../messages/core.js';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import type { DispatchEnd, Dispatches } from '../../../messages/dispatch/dispatches.js';
import { FastPath } from '../../../messages/dispatch/fast-path.js';
import type { MeshFixture, MeshNodeUnderTest } from '../../mesh/mesh-fixture.js';
import { createGateway, type Gateway } from '../../setup/gateway.js';
import type { Faults } from './faults.js';

/** What all work of a process that is dead fails with. */
export class DeadProcess extends Error {}

/** What processes share. */
export interface Context {
  fixture: MeshFixture;
  workflowStarter: WorkflowStarter;
  faults: Faults;
  /** Told of every answer that was taken. */
  accepted(dispatchId: string): void;
}

/** How a process that takes a message has it done. `forwarded`: by a dispatch that it forwards to the node that holds the socket. */
export type Way = 'fast path' | 'forwarded' | 'workflow path';

/** One process of the platform with the roles api and mesh. When it dies, nothing it holds in memory reaches anybody any more. */
export class PlatformProcess {
  readonly node: MeshNodeUnderTest;
  /** With the fast path, or without it. */
  readonly gateway: Gateway;
  /** Rejects with DeadProcess. */
  readonly death: Promise<never>;
  readonly #fastPath: FastPath;
  readonly #context: Context;
  readonly #life: Life;

  private constructor(context: Context, life: Life, node: MeshNodeUnderTest, parts: Parts, way: Way) {
    const { core, dispatches } = parts;
    this.#context = context;
    this.#life = life;
    this.node = node;
    this.death = life.death;
    this.#fastPath = new FastPath({
      core,
      dispatches,
      runner: node.runner,
      forwarder: null,
      supervise: async (ref) => {
        life.check();
        context.workflowStarter.message(ref);
      },
    });
    const front = new FastPath({
      core,
      dispatches,
      runner: null,
      forwarder: {
        isReachable: true,
        hostedNode: () => node.runner.meshId,
        forward: async (open, elapsedMs) => this.#fastPath.take(open, elapsedMs) ?? 'refused',
      },
      supervise: async () => undefined,
    });
    void front.stop(); // it hands nothing over: the node does
    const fastPaths = { 'fast path': this.#fastPath, forwarded: front, 'workflow path': null };
    this.gateway = createGateway(core, fastPaths[way]);
  }

  static async start(context: Context, way: Way): Promise<PlatformProcess> {
    const life = new Life();
    const { fixture, workflowStarter, faults } = context;
    const db = mortal(fixture.core.db, life, faults);
    const core: MessageCore = {
      ...fixture.core,
      db,
      workflowStarter: { ...workflowStarter, message: (ref) => life.alive && workflowStarter.message(ref) },
    };
    const parts = {
      core,
      dispatches: breakable(createDispatches(core), life, context),
    };
    const { reconcileMs } = DEFAULT_TIMINGS;
    const node = await fixture.node({ dispatches: parts.dispatches, db, timings: { reconcileMs } });
    return new PlatformProcess(context, life, node, parts, way);
  }

  get alive(): boolean {
    return this.#life.alive;
  }

  /** The others take it for dead: its row goes, and its agents are off the routes. */
  async presumeDead(): Promise<void> {
    const { meshId } = this.node;
    await this.#context.fixture.core.db.system(async (tx) => {
      await removeNode(tx, meshId);
      await sweepDeadNodes(tx, meshId, DEFAULT_TIMINGS.deadNodeMs);
    });
  }

  async kill(): Promise<void> {
    this.#life.alive = false;
    await this.presumeDead();
    this.#life.end();
    await this.#fastPath.stop();
    // Gives its port and timers back; what it still tries to write fails.
    void this.node.server.close();
  }
}

interface Parts {
  core: MessageCore;
  dispatches: Dispatches;
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

/** The database as a process reaches it that may die, also between the commit of the accept transaction and its answer. */
function mortal(db: Db, life: Life, faults: Faults): Db {
  return {
    tenant: (tenantId, work) => life.living(() => db.tenant(tenantId, work)),
    system: (work) => life.living(() => db.system(work)),
    systemCall: (statement, values) => life.living(() => db.systemCall(statement, values)),
    timeoutMs: db.timeoutMs,
    renewal: (work) => life.living(() => db.renewal(work)),
    call: (tenantId, name, text, values) => life.living(() => db.call(tenantId, name, text, values)),
    batch: (statement, call) =>
      life.living(async () => {
        const row = await db.batch(statement, call);
        const { verdict, message_id } = row as { verdict?: string; message_id?: string };
        if (verdict === 'dispatched' && message_id) await faults.at('accepted', message_id);
        return row as never;
      }),
    counts: () => db.counts(),
    close: () => db.close(),
  };
}

/** The transactions of a dispatch's life, with the points at which something goes wrong around them. */
function breakable(dispatches: Dispatches, life: Life, { faults, accepted }: Context): Dispatches {
  const ending = (messageId: string, work: () => Promise<DispatchEnd | null>, dispatchId: string) =>
    life.living(async () => {
      await faults.at('completing', messageId);
      const end = await life.living(work);
      if (end) accepted(dispatchId);
      await faults.at('completed', messageId);
      return end;
    });
  return {
    find: (ref) => dispatches.find(ref),
    release: (ref, reason, options) => dispatches.release(ref, reason, options),
    failAsLost: (ref, code, options) => dispatches.failAsLost(ref, code, options),
    deadlineLeft: (ref) => dispatches.deadlineLeft(ref),
    closedAmong: (refs) => dispatches.closedAmong(refs),
    agentJoined: (tenantId, agent) => dispatches.agentJoined(tenantId, agent),
    markSent: (ref, owner) =>
      life.living(async () => {
        const sent = await dispatches.markSent(ref, owner);
        if (sent) await faults.at('marked', ref.message_id);
        return sent;
      }),
    end: (open, result, epoch) => ending(open.message_id, () => dispatches.end(open, result, epoch), open.dispatch_id),
  };
}
