import { setTimeout as delay } from 'node:timers/promises';
import type { MessageInput } from '../../contracts/workflows.js';
import { errorMessage, isTenantBusy } from '../../runtime/errors.js';
import { FairSemaphore } from '../../runtime/fair-semaphore.js';
import type { MessageCore } from '../core.js';
import { takeStep } from './next-step.js';

/** Concurrent steps, those of one tenant, and steps of one tenant that may wait. A sweeper takes those beyond. */
const [AT_ONCE, OF_TENANT_AT_ONCE, WAITING_MAX] = [32, 4, 2_000];
/** While evaluators are busy: the pause between two looks at a message, in milliseconds, and the number of looks before it is left to a sweeper. */
const [EVALUATORS_PAUSE_MS, EVALUATORS_LOOKS] = [500, 20];

/**
 * Takes a message a step further in this process. If the message waits for a human, its workflow is started, which keeps the times of the request. A workflow
 * that watches the message is told of its end.
 * @param looksMax how often it looks while the evaluators of policies are busy
 * @throws while the database is away
 */
export async function advanceMessage(core: MessageCore, ref: MessageInput, looksMax = EVALUATORS_LOOKS): Promise<void> {
  for (let looks = 1; ; looks += 1) {
    const { step, isWatched } = await takeStep(core, ref, 'process');
    const waitsFor = step?.kind === 'waits' ? step.waits_for : 'end';
    if (waitsFor === 'person' || (isWatched && waitsFor === 'end')) core.workflowStarter.message(ref);
    if (waitsFor !== 'evaluator' || looks >= looksMax) return;
    await delay(EVALUATORS_PAUSE_MS);
  }
}

/** Takes messages a step further in the background; tenants take turns. A sweeper repeats steps that fail or get no turn. */
export class Advancer {
  readonly #core: () => MessageCore;
  readonly #underWay = new Set<Promise<void>>();
  /** Messages that wait for their turn. */
  readonly #waiting = new Set<string>();
  readonly #turns = new FairSemaphore({
    limit: AT_ONCE,
    perKey: OF_TENANT_AT_ONCE,
    waitingMax: WAITING_MAX,
    refusal: () => new Error(`the tenant has ${WAITING_MAX} messages that wait for a step`),
  });

  constructor(core: () => MessageCore) {
    this.#core = core;
  }

  advance(ref: MessageInput): void {
    const core = this.#core();
    const { tenant_id, message_id, session_id } = ref;
    if (this.#waiting.has(message_id)) return;
    this.#waiting.add(message_id);
    const task = this.#turns
      .run(tenant_id, () => {
        this.#waiting.delete(message_id); // a change from here on needs another step
        return advanceMessage(core, { tenant_id, message_id, session_id });
      })
      .catch((error: unknown) => {
        this.#waiting.delete(message_id); // it had no turn
        const level = isTenantBusy(error) ? 'debug' : 'warn';
        core.log[level]({ message_id, err: errorMessage(error) }, 'a message could not go on; the sweeper repeats it');
      })
      .finally(() => this.#underWay.delete(task));
    this.#underWay.add(task);
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }
}
