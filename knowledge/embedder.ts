/** Makes vectors of texts. */
export interface Embedder {
  /** The name that is stored with each chunk; chunks of another model are stale. */
  readonly model: string;
  /** Of its vectors; 0 for a provider that has not been asked yet (see `dimensionsOf`). */
  readonly dimensions: number;
  readonly kind: 'http' | 'local';
  /**
   * Embeds texts, one vector of length 1 for each, in their order.
   * @throws PlatformError `BAD_GATEWAY` when the provider fails
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

/** A text that every provider can embed. */
export const HARMLESS_TEXT = 'A few plain words.';

/**
 * How many dimensions the vectors of an embedder have: a provider that has not been asked yet is asked.
 * @throws PlatformError `BAD_GATEWAY` when the provider fails
 */
export async function dimensionsOf(embedder: Embedder, signal: AbortSignal): Promise<number> {
  if (embedder.dimensions > 0) return embedder.dimensions;
  const [vector] = await embedder.embed([HARMLESS_TEXT], signal);
  return vector?.length ?? 0;
}

/** The text that is embedded for a chunk: title and heading path first, a line each. */
export function embeddedText(title: string, headingPath: readonly string[], text: string): string {
  return [title, headingPath.join(' > '), text].filter((line) => line !== '').join('\n');
}
