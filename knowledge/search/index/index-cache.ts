import { PlatformError } from '../../../runtime/errors.js';
import { FairSemaphore } from '../../../runtime/fair-semaphore.js';
import { unlessAborted } from '../../../runtime/promises/unless-aborted.js';
import type { IndexLoader, LoadedIndex, LoadSize } from './index-loader.js';
import { NamespaceIndex } from './namespace-index.js';

/** What a chunk takes beside its vector, roughly. */
const CHUNK_BYTES = 1_000;
/** A load of more than this share of the memory is a large one. */
const LARGE_SHARE = 1 / 16;
/** Large loads of one tenant that wait; 503 beyond. */
const WAITING_MAX = 200;
/** How long a large load waits for its turn, in milliseconds; 503 beyond. */
const WAIT_MAX_MS = 20_000;

const busy = (): PlatformError =>
  new PlatformError('SERVICE_UNAVAILABLE', 'Too many knowledge bases are being read into memory. Try again.');
/** The index of a base that does not exist, and of one that is not loaded. */
const nothing = () => new NamespaceIndex(0, false);

/** Which knowledge base: tenants may use the same names. */
export interface BaseKey {
  tenantId: string;
  namespace: string;
}

/** What is kept in memory: of how many knowledge bases, and how much. */
export interface IndexMemory {
  bases: number;
  bytes: number;
}

interface Entry extends LoadedIndex {
  key: BaseKey;
  /** The refresh that runs; the next one waits for it. */
  refreshing: Promise<void>;
  /** The revision at which it was found to be too large, read from its beginning. */
  tooLargeAt?: number;
}

/** A knowledge base whose index is larger than the memory for all. */
class TooLarge extends PlatformError {
  constructor() {
    super('SERVICE_UNAVAILABLE', 'The knowledge base is larger than the memory for its index (KNOWLEDGE_CACHE_MB).');
  }
}

/** Neither part of a key can hold this character. */
const keyOf = ({ tenantId, namespace }: BaseKey): string => `${tenantId}\n${namespace}`;

/**
 * The indexes that are in memory, those that are being loaded counted as they grow. When they take more than the bound, those used longest ago
 * go; when all that is left is being loaded, the one that grows is refused.
 */
export class IndexCache {
  /** In the order of their use, the last one used at the end. */
  readonly #entries = new Map<string, Entry>();
  readonly #loading = new Set<Entry>();
  /** Large loads run one at a time: each may take all the memory there is, and its rows beside it. */
  readonly #largeLoads = new FairSemaphore({
    limit: 1,
    perKey: 1,
    waitingMax: WAITING_MAX,
    waitMaxMs: WAIT_MAX_MS,
    refusal: busy,
  });

  /** @param maxBytes of all indexes together; a larger one is refused */
  constructor(
    private readonly loader: IndexLoader,
    private readonly maxBytes: number,
  ) {}

  get bytes(): number {
    let sum = 0;
    for (const { index } of new Set([...this.#entries.values(), ...this.#loading])) sum += index.bytes;
    return sum;
  }

  get memory(): IndexMemory {
    return { bases: new Set([...this.#entries.values(), ...this.#loading]).size, bytes: this.bytes };
  }

  /** The knowledge bases that are kept. */
  keys(): BaseKey[] {
    return [...this.#entries.values()].map(({ key }) => key);
  }

  /** Drops the index of a knowledge base. One that is being loaded goes with its load. @returns whether there was one */
  forget(key: BaseKey): boolean {
    return this.#entries.delete(keyOf(key));
  }

  /**
   * The index of a knowledge base at a revision or a later one.
   * @param revision as the database has it now; undefined for a base that does not exist
   * @param dimensions of the present model's vectors; 0 when they are not needed
   * @param late once it is aborted nobody waits, and no load begins; one that has begun goes on, so that a later query finds it done
   * @throws the signal's reason; PlatformError `SERVICE_UNAVAILABLE` when it is larger than the bound, and when others that are being loaded
   *   leave no room
   */
  async at(key: BaseKey, revision: number | undefined, dimensions: number, late: AbortSignal): Promise<NamespaceIndex> {
    if (revision === undefined) {
      this.forget(key);
      return nothing();
    }
    return unlessAborted(this.#current(this.#used(key), revision, dimensions, late), late);
  }

  async #current(entry: Entry, revision: number, dimensions: number, late: AbortSignal): Promise<NamespaceIndex> {
    const isCurrent = () =>
      entry.seen !== undefined && entry.seen.revision >= revision && this.loader.fits(entry.index, dimensions);
    // Another query may be loading this very revision.
    await entry.refreshing.catch(() => undefined);
    if (isCurrent()) return entry.index;
    late.throwIfAborted();
    entry.refreshing = entry.refreshing
      .catch(() => undefined)
      .then(async () => {
        if (isCurrent()) return;
        late.throwIfAborted();
        await this.#refresh(entry, revision, dimensions);
      });
    await entry.refreshing;
    return entry.index;
  }

  /** Runs a load in its turn. @throws when its base is larger than the bound, or too many wait */
  load(tenantId: string, size: LoadSize, work: () => Promise<void>): Promise<void> {
    const vectorBytes = size.dimensions * Float32Array.BYTES_PER_ELEMENT;
    // What its vectors alone do not leave room for would push all others out before it is refused.
    if (size.chunks * vectorBytes > this.maxBytes) return Promise.reject(new TooLarge());
    const isLarge = size.missing * (CHUNK_BYTES + vectorBytes) > this.maxBytes * LARGE_SHARE;
    return isLarge ? this.#largeLoads.run(tenantId, work) : work();
  }

  /** Called as an index grows: makes room for it. @throws when there is none */
  grow(index: NamespaceIndex): void {
    if (index.bytes > this.maxBytes) throw new TooLarge();
    let { bytes } = this;
    for (const [name, entry] of this.#entries) {
      if (bytes <= this.maxBytes) return;
      if (this.#loading.has(entry)) continue;
      bytes -= entry.index.bytes;
      this.#entries.delete(name);
    }
    if (bytes > this.maxBytes) throw busy();
  }

  async #refresh(entry: Entry, revision: number, dimensions: number): Promise<void> {
    if (entry.tooLargeAt !== undefined && entry.tooLargeAt >= revision) throw new TooLarge();
    const isWhole = entry.seen === undefined;
    this.#loading.add(entry);
    try {
      await this.loader.refresh(entry.key.tenantId, entry.key.namespace, entry, dimensions);
    } catch (error) {
      entry.index = nothing(); // it may be half loaded
      entry.seen = undefined;
      if (error instanceof TooLarge && isWhole) entry.tooLargeAt = revision;
      throw error;
    } finally {
      this.#loading.delete(entry);
    }
  }

  #used(key: BaseKey): Entry {
    const name = keyOf(key);
    const entry = this.#entries.get(name) ?? {
      key,
      index: nothing(),
      seen: undefined,
      refreshing: Promise.resolve(),
    };
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    return entry;
  }
}
