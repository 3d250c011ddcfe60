import { LRUCache } from 'lru-cache';
import type { PlatformToolName, ToolCallPayload, ToolResult } from '../contracts/api/tools.js';
import { digestOf } from '../messages/digest.js';
import type { CallCancellation } from './call-context.js';
import { type Outcome, refusal } from './tool-result.js';
import { hasTarget } from './tool-targets.js';

/** The size of an entry without its result, estimated. */
const ENTRY_BYTES = 512;
/** Tools that only read: a repeat reads again, so that what was deleted meanwhile does not answer. */
const READS = new Set<string>(['knowledge_base.query', 'fleet.get_agents'] satisfies PlatformToolName[]);

interface Entry {
  digest: string;
  /** Undefined for a call that a repeat makes again. */
  outcome: Promise<Outcome> | undefined;
}

/**
 * The calls with an `idempotency_key`, kept until their deadline: a repeat gets the same result. A call that did not reach its target is not
 * kept, so a repeat tries again. Results of tools that only read are not kept either. Beyond 10,000 calls or 32 MiB of results, the call that
 * ended first is evicted.
 */
export class IdempotencyCache {
  readonly #running = new Map<string, Entry>();
  readonly #ended = new LRUCache<string, Entry>({ max: 10_000, maxSize: 32 * 1024 * 1024, ttlAutopurge: true });

  /**
   * Runs a call unless one of the same key runs or has run; a repeat waits for that one's result.
   * @param boundKey `boundKeyOf` the call
   * @param cancellation cancels this call; for a repeat, only the waiting
   */
  async once(
    callerKey: string,
    boundKey: string | undefined,
    payload: ToolCallPayload,
    cancellation: CallCancellation,
    run: () => Promise<Outcome>,
  ): Promise<ToolResult> {
    if (boundKey === undefined) return (await run()).result;
    const name = JSON.stringify([callerKey, boundKey]);
    const { tool, target, arguments: given } = payload;
    const digest = digestOf({ tool, target, arguments: given });
    const known = this.#running.get(name) ?? this.#ended.peek(name);
    if (known && known.digest !== digest) {
      return refusal('IDEMPOTENCY_MISMATCH', 'Another call was made under this idempotency_key.');
    }
    if (known?.outcome) return (await cancellation.race(known.outcome)).result;
    const outcome = run();
    this.#running.set(name, { digest, outcome });
    try {
      const { sent, result } = await outcome;
      const ttl = Math.floor(cancellation.endsAtMs - performance.now());
      if (!sent || ttl <= 0) return result;
      const isRead = READS.has(payload.tool) && !hasTarget(payload);
      const size = ENTRY_BYTES + (isRead ? 0 : Buffer.byteLength(JSON.stringify(result)));
      this.#ended.set(name, { digest, outcome: isRead ? undefined : outcome }, { ttl, size });
      return result;
    } finally {
      this.#running.delete(name);
    }
  }
}
