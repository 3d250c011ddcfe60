import { createHash } from 'node:crypto';
import type { ToolCallPayload, ToolResult } from '../contracts/api/tools.js';
import type { CallCancellation } from './call-context.js';
import { type Outcome, refusal } from './tool-result.js';

const BYTES_MAX = 32 * 1024 * 1024;
const ENTRIES_MAX = 10_000;
/** The size of an entry without its result, estimated. */
const ENTRY_BYTES = 512;

interface Entry {
  digest: string;
  outcome: Promise<Outcome>;
  /** 0 while the call runs. */
  bytes: number;
  endsAtMs: number;
  expiry?: NodeJS.Timeout;
}

/**
 * The calls with an `idempotency_key`, kept until their deadline: a repeat gets the same result. A call that did not reach its target is not
 * kept, so a repeat tries again. At the limits, the call that ended first is evicted.
 */
export class IdempotencyCache {
  readonly #entries = new Map<string, Entry>();
  readonly #ended = new Set<string>();
  #endedBytes = 0;

  /**
   * Runs a call unless one of the same key runs or has run; a repeat waits for that one's result.
   * @param cancellation cancels this call; for a repeat, only the waiting
   */
  async once(
    callerKey: string,
    payload: ToolCallPayload,
    cancellation: CallCancellation,
    run: () => Promise<Outcome>,
  ): Promise<ToolResult> {
    if (!payload.idempotency_key) return (await run()).result;
    const name = JSON.stringify([callerKey, payload.idempotency_key]);
    const digest = digestOf(payload);
    const known = this.#entries.get(name);
    if (known && known.digest !== digest) {
      return refusal('IDEMPOTENCY_MISMATCH', 'Another call was made under this idempotency_key.');
    }
    if (known) return (await cancellation.race(known.outcome)).result;
    const entry: Entry = { digest, outcome: run(), bytes: 0, endsAtMs: cancellation.endsAtMs };
    this.#entries.set(name, entry);
    try {
      const outcome = await entry.outcome;
      this.#keep(name, entry, outcome);
      return outcome.result;
    } catch (error) {
      this.#entries.delete(name);
      throw error;
    }
  }

  #keep(name: string, entry: Entry, { sent, result }: Outcome): void {
    const lifetimeMs = entry.endsAtMs - performance.now();
    if (!sent || lifetimeMs <= 0) {
      this.#entries.delete(name);
      return;
    }
    entry.bytes = ENTRY_BYTES + Buffer.byteLength(JSON.stringify(result));
    this.#endedBytes += entry.bytes;
    this.#ended.add(name);
    entry.expiry = setTimeout(() => this.#delete(name), lifetimeMs).unref();
    while (this.#ended.size > ENTRIES_MAX || this.#endedBytes > BYTES_MAX) {
      const [oldest] = this.#ended;
      if (oldest === undefined) return;
      this.#delete(oldest);
    }
  }

  #delete(name: string): void {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    this.#ended.delete(name);
    clearTimeout(entry?.expiry);
    this.#endedBytes -= entry?.bytes ?? 0;
  }
}

function digestOf({ tool, target, arguments: given }: ToolCallPayload): string {
  return createHash('sha256')
    .update(JSON.stringify([tool, target ?? null, given]))
    .digest('base64');
}
