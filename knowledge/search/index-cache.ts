import { PlatformError } from '../../runtime/errors.js';
import type { IndexLoader, LoadedIndex } from './index-loader.js';
import { NamespaceIndex } from './namespace-index.js';

/** Which knowledge base: tenants may use the same names. */
interface Key {
  tenantId: string;
  namespace: string;
}

interface Entry extends LoadedIndex {
  key: Key;
  /** The refresh that runs; the next one waits for it. */
  refreshing: Promise<void>;
}

/** Neither part of a key can hold this character. */
const keyOf = ({ tenantId, namespace }: Key): string => `${tenantId}\n${namespace}`;

/** The indexes that are in memory. When they take more than the bound, those used longest ago go. */
export class IndexCache {
  /** In the order of their use, the last one used at the end. */
  readonly #entries = new Map<string, Entry>();

  /** @param maxBytes of all indexes together; a larger one is refused */
  constructor(
    private readonly loader: IndexLoader,
    private readonly maxBytes: number,
  ) {}

  get bytes(): number {
    let sum = 0;
    for (const { index } of this.#entries.values()) sum += index.bytes;
    return sum;
  }

  /**
   * The index of a knowledge base at a revision or a later one.
   * @param revision as the database has it now; undefined for a base that does not exist
   * @param dimensions of the present model's vectors; 0 when they are not needed
   * @throws PlatformError `SERVICE_UNAVAILABLE` when it is larger than the bound
   */
  async at(key: Key, revision: number | undefined, dimensions: number): Promise<NamespaceIndex> {
    if (revision === undefined) {
      this.#entries.delete(keyOf(key));
      return new NamespaceIndex(0);
    }
    const entry = this.#used(key);
    const isCurrent = () =>
      entry.revision !== undefined && entry.revision >= revision && this.loader.fits(entry.index, dimensions);
    // Another query may be loading this very revision.
    await entry.refreshing.catch(() => undefined);
    if (isCurrent()) return entry.index;
    entry.refreshing = entry.refreshing
      .catch(() => undefined)
      .then(async () => {
        if (!isCurrent()) await this.loader.refresh(key.tenantId, key.namespace, entry, dimensions);
      });
    try {
      await entry.refreshing;
    } catch (error) {
      this.#entries.delete(keyOf(key)); // it may be half loaded
      throw error;
    }
    this.#makeRoom(entry);
    return entry.index;
  }

  /** Called as an index grows. @throws when it is larger than the bound alone */
  checkSize(index: NamespaceIndex): void {
    if (index.bytes <= this.maxBytes) return;
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'The knowledge base is larger than the memory for its index (KNOWLEDGE_CACHE_MB).',
    );
  }

  #used(key: Key): Entry {
    const name = keyOf(key);
    const entry = this.#entries.get(name) ?? {
      key,
      index: new NamespaceIndex(0),
      revision: undefined,
      refreshing: Promise.resolve(),
    };
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    return entry;
  }

  #makeRoom(keep: Entry): void {
    let { bytes } = this;
    for (const [name, entry] of this.#entries) {
      if (bytes <= this.maxBytes) return;
      if (entry === keep) continue;
      bytes -= entry.index.bytes;
      this.#entries.delete(name);
    }
  }
}
