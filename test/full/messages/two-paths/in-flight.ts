import { within } from '../../../setup/until.js';
import type { Inbox } from './agents.js';
import { DeadProcess } from './life.js';

interface Wait {
  dispatchId: string;
  by: 'owner' | 'workflow';
  over: Promise<void>;
  isOver: boolean;
}

/** Dispatches that somebody waits for: the process that took the message on the fast path, or the message's workflow. */
export class InFlight {
  readonly #waits: Wait[] = [];
  readonly #defects: unknown[] = [];

  /** The end of its process is an end of it; any other failure is a defect. */
  add(dispatchId: string, by: Wait['by'], work: Promise<unknown>): void {
    const wait: Wait = { dispatchId, by, isOver: false, over: Promise.resolve() };
    const end = (error?: unknown) => {
      wait.isOver = true;
      if (error !== undefined && !(error instanceof DeadProcess)) this.#defects.push(error);
    };
    wait.over = work.then(() => end(), end);
    this.#waits.push(wait);
  }

  /** Whether the message's workflow waits for that dispatch. */
  isSupervised(dispatchId: string): boolean {
    return this.#waits.some((wait) => wait.dispatchId === dispatchId && wait.by === 'workflow' && !wait.isOver);
  }

  /** Resolves when nobody waits for that dispatch any more. */
  async ended(dispatchId: string): Promise<void> {
    const ofDispatch = this.#waits.filter((wait) => wait.dispatchId === dispatchId);
    await bounded(ofDispatch, ({ over }) => over);
  }

  /** Resolves when each is over or at its agent. @throws what went wrong meanwhile */
  async quiet(inbox: Inbox): Promise<void> {
    const waiting = this.#waits.filter(({ isOver }) => !isOver);
    await bounded(waiting, ({ over, dispatchId }) => Promise.race([over, inbox.arrived(dispatchId)]));
    const [defect] = this.#defects;
    if (defect !== undefined) throw defect;
  }
}

/** Generous: a busy machine is not a failed test. */
const LIMIT_MS = 20_000;

async function bounded(waits: Wait[], endOf: (wait: Wait) => Promise<void>): Promise<void> {
  await Promise.all(waits.map((wait) => within(endOf(wait), LIMIT_MS, `${wait.dispatchId}, by its ${wait.by}`)));
}
