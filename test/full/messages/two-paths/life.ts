import type { MessageCore, WorkflowStarter } from '../../../../messages/core.js';
import { createDispatches } from '../../../../messages/dispatch/dispatch-store.js';
import type { Dispatches } from '../../../../messages/dispatch/dispatches.js';
import type { MeshFixture } from '../../../mesh/mesh-fixture.js';
import type { Gateway } from '../../../setup/gateway.js';
import type { Faults } from './faults.js';
import type { LossyNetwork } from './network.js';

/** What all work of a process that is dead fails with. */
export class DeadProcess extends Error {}

/** What processes share. */
export interface Context {
  fixture: MeshFixture;
  workflowStarter: WorkflowStarter;
  faults: Faults;
  /** Null: processes know of no other. */
  network: LossyNetwork | null;
  /** Told of every answer that was taken. */
  accepted(dispatchId: string): void;
  /** Told of every dispatch that a node has taken from another process. */
  taken(dispatchId: string, over: Promise<unknown>): void;
}

/** What callers come to. */
export interface Entry {
  readonly gateway: Gateway;
  readonly life: Life;
}

/** Of one process. Once it is over, nothing that the process holds in memory reaches anybody any more. */
export class Life {
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

  /** What these functions promise is kept only while the process lives. */
  guard<T extends object>(target: T, replaced: Partial<T> = {}): T {
    return new Proxy(target, {
      get: (of, key) => {
        const member = Reflect.get(replaced, key) ?? Reflect.get(of, key);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          const result = this.alive ? member.apply(of, args) : this.death;
          if (!(result instanceof Promise)) return result;
          return result.then((value: unknown) => {
            this.check();
            return value;
          });
        };
      },
    });
  }
}

/** What a process works with, as long as it lives; with the points at which something goes wrong around the transactions of a dispatch. */
export function partsOf(context: Context, life: Life): { core: MessageCore; dispatches: Dispatches } {
  const { fixture, workflowStarter, faults, accepted } = context;
  const { db } = fixture.core;
  const core: MessageCore = {
    ...fixture.core,
    db: life.guard(db, {
      // Also between the commit of the accept transaction and its answer.
      batch: async (statement, call) => {
        const row = await db.batch(statement, call);
        const { verdict, message_id } = row as { verdict?: string; message_id?: string };
        if (verdict === 'dispatched' && message_id) await faults.at('accepted', message_id);
        return row;
      },
    }),
    workflowStarter: { ...workflowStarter, message: (ref) => life.alive && workflowStarter.message(ref) },
  };
  const dispatches = createDispatches(core);
  return {
    core,
    dispatches: life.guard(dispatches, {
      markSent: async (ref, owner) => {
        const sent = await dispatches.markSent(ref, owner);
        if (sent) await faults.at('marked', ref.message_id);
        return sent;
      },
      end: async (open, result, epoch) => {
        await faults.at('completing', open.message_id);
        life.check();
        const end = await dispatches.end(open, result, epoch);
        if (end) accepted(open.dispatch_id);
        await faults.at('completed', open.message_id);
        return end;
      },
    }),
  };
}
