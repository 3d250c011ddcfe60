import { createHash } from 'node:crypto';
import type { ToolCallPayload, ToolResult } from '../contracts/tools.js';
import type { CallEnding } from './tool-deadline.js';
import { type Outcome, refusal } from './tool-result.js';

const KEPT_BYTES_MAX = 32 * 1024 * 1024;
const KEPT_MAX = 10_000;
/** What an entry costs beside its result. */
const ENTRY_BYTES = 512;

interface Entry {
  digest: string;
  outcome: Promise<Outcome>;
  /** 0 until it has ended. */
  bytes: number;
  endsAtMs: number;
  forget?: NodeJS.Timeout;
}

/**
 * The calls that came with an `idempotency_key`, while they run and until their deadline: a repeat gets the same result. What did not
 * reach its target is not kept, so a repeat tries again. Bounded: the oldest that have ended give way.
 */
export class IdempotencyCache {
  readonly #entries = new Map<string, Entry>();
  readonly #kept = new Set<string>();
  #keptBytes = 0;

  /**
   * Runs the call, unless one of the same key runs or has run.
   * @param ending what ends this call; one that only waits for another's result ends alone
   */
  async once(
    callerKey: string,
    payload: ToolCallPayload,
    ending: CallEnding,
    run: () => Promise<Outcome>,
  ): Promise<ToolResult> {
    if (!payload.idempotency_key) return (await run()).result;
    const name = JSON.stringify([callerKey, payload.idempotency_key]);
    const digest = digestOf(payload);
    const known = this.#entries.get(name);
    if (known && known.digest !== digest) {
      return refusal('IDEMPOTENCY_MISMATCH', 'Another call was made under this idempotency_key.');
    }
    if (known) return (await ending.before(known.outcome)).result;
    const entry: Entry = { digest, outcome: run(), bytes: 0, endsAtMs: ending.endsAtMs };
    this.#entries.set(name, entry);
    try {
      const outcome = await entry.outcome;
      this.#ended(name, entry, outcome);
      return outcome.result;
    } catch (error) {
      this.#entries.delete(name);
      throw error;
    }
  }

  #ended(name: string, entry: Entry, { sent, result }: Outcome): void {
    const lifeMs = entry.endsAtMs - performance.now();
    if (!sent || lifeMs <= 0) {
      this.#entries.delete(name);
      return;
    }
    entry.bytes = ENTRY_BYTES + Buffer.byteLength(JSON.stringify(result));
    this.#keptBytes += entry.bytes;
    this.#kept.add(name);
    entry.forget = setTimeout(() => this.#forget(name), lifeMs).unref();
    while (this.#kept.size > KEPT_MAX || this.#keptBytes > KEPT_BYTES_MAX) {
      const [oldest] = this.#kept;
      if (oldest === undefined) return;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    this.#kept.delete(name);
    clearTimeout(entry?.forget);
    this.#keptBytes -= entry?.bytes ?? 0;
  }
}

function digestOf({ tool, target, arguments: given }: ToolCallPayload): string {
  return createHash('sha256')
    .update(JSON.stringify([tool, target ?? null, given]))
    .digest('base64');
}
