import { PlatformError } from '../runtime/errors.js';
import { shareNext } from '../runtime/promises/share-next.js';
import type { QuotaRow, QuotaSubject } from './tenant-limits.js';

/** What was read of a tenant with limits. */
export interface QuotaReading {
  row: QuotaRow;
  /** Whether the row has everything that was committed before the reading began. */
  isComplete: boolean;
}

/** A quota that is used up. */
interface UsedUp {
  /** What of, for people. */
  text: string;
  /** On `performance.now()`: when the quota begins anew. */
  endsAtMs: number;
  endsAt: Date;
}

/** The first quota of a tenant or key that is used up; null while none is. @param readAtMs when the row was read, on `performance.now()` */
export function usedUp(row: QuotaRow, readAtMs: number): UsedUp | null {
  const { messages_per_day, tokens_per_day, cost_usd_per_month } = row;
  const day = { endsAtMs: readAtMs + row.day_left_ms, endsAt: row.day_ends_at };
  const month = { endsAtMs: readAtMs + row.month_left_ms, endsAt: row.month_ends_at };
  // The month first: who waits for the day would wait in vain.
  if (cost_usd_per_month !== null && row.cost_usd >= cost_usd_per_month)
    return { text: `its budget of ${cost_usd_per_month} US dollars for this month`, ...month };
  if (messages_per_day !== null && row.messages >= messages_per_day)
    return { text: `its ${messages_per_day} messages for today`, ...day };
  if (tokens_per_day !== null && row.tokens >= tokens_per_day)
    return { text: `its ${tokens_per_day} tokens for today`, ...day };
  return null;
}

/** Whose quota it is, for people. */
function ownerOf({ kind, key }: QuotaRow): string {
  if (kind === '') return 'The tenant';
  return kind === 'agent_type' ? `The agent type ${key}` : `This ${kind}`;
}

/** The refusal of a message. */
function exceeded(owner: string, { text, endsAtMs, endsAt }: UsedUp): PlatformError {
  const seconds = Math.max(1, Math.ceil((endsAtMs - performance.now()) / 1_000));
  return new PlatformError(
    'QUOTA_EXCEEDED',
    `${owner} has used up ${text} (UTC). It may send again from ${endsAt.toISOString()} on, or with a higher limit.`,
    { headers: { 'Retry-After': String(seconds) } },
  );
}

/** How old the newest complete reading may be, in milliseconds: tokens and cost of what ended since are not known. */
const COMPLETE_FOR_MS = 10_000;

/** The refusal of a message while nobody can say whether the tenant has room: what was used is not added up. */
export function notAddedUp(): PlatformError {
  return new PlatformError(
    'SERVICE_UNAVAILABLE',
    'What the tenant has used of its quotas is not added up yet. Try again.',
    {
      headers: { 'Retry-After': '1' },
    },
  );
}

/**
 * What a tenant or key with limits has used, as this process knows it: what was read last, and the messages that this process has let in since the last
 * complete reading, which had everything that was committed before it. The latter may be in the former already, so the meter overestimates, and
 * never refuses by its own count alone. A reading that is not complete shows what has been used at least.
 */
export class QuotaMeter {
  /** When it was asked last, on `performance.now()`. */
  usedAtMs = performance.now();
  /** Reads what has been used, once the messages that are being let in have been. Callers share a reading. Gives whether it was complete. */
  readonly readAgain: () => Promise<boolean>;
  #row: QuotaRow;
  #readAtMs: number;
  /** Messages that are being let in. */
  readonly #entering = new Set<Promise<unknown>>();
  /** Messages that were let in, and how many of them when the newest complete reading began, at `#completeAtMs`. */
  #entered = 0;
  #enteredAtReading = 0;
  #completeAtMs: number;

  /** @param read reads the row and sets it, as `beginReading` says; gives whether the reading was complete */
  constructor({ row, isComplete }: QuotaReading, readAtMs: number, read: (meter: QuotaMeter) => Promise<boolean>) {
    this.#row = row;
    this.#readAtMs = readAtMs;
    this.#completeAtMs = isComplete ? readAtMs : Number.NEGATIVE_INFINITY;
    this.readAgain = shareNext(async () => {
      await Promise.allSettled(this.#entering);
      return read(this);
    });
  }

  /** Begins a new reading. After a complete one the messages count no more that were let in before it. @returns what sets it */
  beginReading(): (reading: QuotaReading) => void {
    const readAtMs = performance.now();
    const entered = this.#entered;
    return ({ row, isComplete }) => {
      if (readAtMs < this.#readAtMs) return; // a later one was faster
      this.#row = row;
      this.#readAtMs = readAtMs;
      if (!isComplete) return;
      this.#enteredAtReading = entered;
      this.#completeAtMs = readAtMs;
    };
  }

  /** Whose quota it is. */
  get subject(): QuotaSubject {
    return this.#row;
  }

  /** The refusal while a quota is known to be used up; null where there is room, or may be. */
  get refusal(): PlatformError | null {
    const used = usedUp(this.#row, this.#readAtMs);
    return used && performance.now() < used.endsAtMs ? exceeded(ownerOf(this.#row), used) : null;
  }

  /** Whether a message may enter without a new reading. */
  get hasRoom(): boolean {
    const { messages_per_day, messages, day_left_ms } = this.#row;
    if (performance.now() >= this.#readAtMs + day_left_ms) return false; // it is yesterday's
    if (performance.now() >= this.#completeAtMs + COMPLETE_FOR_MS) return false;
    if (usedUp(this.#row, this.#readAtMs)) return false;
    const since = this.#entered - this.#enteredAtReading + this.#entering.size;
    return messages_per_day === null || messages + since < messages_per_day;
  }

  /** Lets a message in, at once: `work` accepts it. */
  enter<T>(work: () => Promise<T>): Promise<T> {
    const entering: Promise<T> = work().finally(() => {
      this.#entering.delete(entering);
      this.#entered += 1;
    });
    this.#entering.add(entering);
    return entering;
  }
}
