/** Makes vectors of texts. */
export interface Embedder {
  /** The name that is stored with each chunk; chunks of another model are stale. */
  readonly model: string;
  readonly dimensions: number;
  readonly kind: 'http' | 'local';
  /**
   * Embeds texts, one vector of length 1 for each, in their order.
   * @throws PlatformError `BAD_GATEWAY` when the provider fails
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

/** The text that is embedded for a chunk: title and heading path first, a line each. */
export function embeddedText(title: string, headingPath: readonly string[], text: string): string {
  return [title, headingPath.join(' > '), text].filter((line) => line !== '').join('\n');
}
