import { within } from '../../setup/until.js';
import type { Inbox } from './agents.js';
import { DeadProcess } from './process.js';

interface Flight {
  dispatchId: string;
  by: 'owner' | 'workflow';
  over: Promise<void>;
  isOver: boolean;
}

/** Dispatches that somebody waits for: the process that took the message on the fast path, or the message's workflow. */
export class Flights {
  readonly #flights: Flight[] = [];
  readonly #defects: unknown[] = [];

  /** The end of its process is an end of it; any other failure is a defect. */
  add(dispatchId: string, by: Flight['by'], work: Promise<unknown>): void {
    const flight: Flight = { dispatchId, by, isOver: false, over: Promise.resolve() };
    const end = (error?: unknown) => {
      flight.isOver = true;
      if (error !== undefined && !(error instanceof DeadProcess)) this.#defects.push(error);
    };
    flight.over = work.then(() => end(), end);
    this.#flights.push(flight);
  }

  /** Whether the message's workflow waits for that dispatch. */
  isSupervised(dispatchId: string): boolean {
    return this.#flights.some(
      (flight) => flight.dispatchId === dispatchId && flight.by === 'workflow' && !flight.isOver,
    );
  }

  /** Resolves when nobody waits for that dispatch any more. */
  async landed(dispatchId: string): Promise<void> {
    const ofDispatch = this.#flights.filter((flight) => flight.dispatchId === dispatchId);
    await bounded(ofDispatch, ({ over }) => over);
  }

  /** Resolves when each is over or at its agent. @throws what went wrong meanwhile */
  async quiet(inbox: Inbox): Promise<void> {
    const flying = this.#flights.filter(({ isOver }) => !isOver);
    await bounded(flying, ({ over, dispatchId }) => Promise.race([over, inbox.arrived(dispatchId)]));
    const [defect] = this.#defects;
    if (defect !== undefined) throw defect;
  }
}

/** Generous: a busy machine is not a failed test. */
const LIMIT_MS = 20_000;

async function bounded(flights: Flight[], wait: (flight: Flight) => Promise<void>): Promise<void> {
  const waits = flights.map((flight) => within(wait(flight), LIMIT_MS, `${flight.dispatchId}, by its ${flight.by}`));
  await Promise.all(waits);
}
