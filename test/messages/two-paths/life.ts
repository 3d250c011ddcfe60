import type { Db } from '../../../db/pool.js';
import type { MessageCore } from '../../../messages/core.js';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import type { DispatchEnd, Dispatches } from '../../../messages/dispatch/dispatches.js';
import type { Context } from './context.js';
import type { Faults } from './faults.js';

/** What all work of a process that is dead fails with. */
export class DeadProcess extends Error {}

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

/** What a process works with, as long as it lives. */
export function partsOf(context: Context, life: Life): { core: MessageCore; dispatches: Dispatches } {
  const { fixture, workflowStarter, faults } = context;
  const core: MessageCore = {
    ...fixture.core,
    db: mortal(fixture.core.db, life, faults),
    workflowStarter: { ...workflowStarter, message: (ref) => life.alive && workflowStarter.message(ref) },
  };
  return { core, dispatches: breakable(createDispatches(core), life, context) };
}
