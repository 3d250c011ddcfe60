import type { Lane } from './embedding/lanes.js';

/** Makes vectors of texts. */
export interface Embedder {
  /** The name that is stored with each chunk; chunks of another model are stale. */
  readonly model: string;
  /** Of its vectors; 0 for a provider that has not been asked yet (see `dimensionsOf`). */
  readonly dimensions: number;
  readonly kind: 'http' | 'local';
  /**
   * Embeds texts, one vector of length 1 for each, in their order.
   * @param lane how urgent they are; `bulk` by default
   * @throws PlatformError `BAD_GATEWAY` when the provider fails, `RATE_LIMITED` when too many texts wait; the signal's reason
   */
  embed(texts: readonly string[], signal: AbortSignal, lane?: Lane): Promise<Float32Array[]>;
}

/** A text that every provider can embed. */
export const HARMLESS_TEXT = 'A few plain words.';

/**
 * How many dimensions the vectors of an embedder have: a provider that has not been asked yet is asked.
 * @throws PlatformError `BAD_GATEWAY` when the provider fails
 */
export async function dimensionsOf(embedder: Embedder, signal: AbortSignal): Promise<number> {
  if (embedder.dimensions > 0) return embedder.dimensions;
  const [vector] = await embedder.embed([HARMLESS_TEXT], signal, 'query');
  return vector?.length ?? 0;
}

/** Of what is embedded before the text of a chunk, so that it does not drown the text itself: characters of the title, and of the headings. */
const TITLE_CHARS = 120;
const PATH_CHARS = 200;
const HEADING_CHARS = 100;

function shortened(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const space = text.lastIndexOf(' ', maxChars);
  return text.slice(0, space > maxChars / 2 ? space : maxChars).toWellFormed();
}

/** The innermost headings for which there is room: they say most of a chunk. */
function shortPath(headingPath: readonly string[]): string {
  let path = '';
  for (const heading of headingPath.toReversed()) {
    const short = shortened(heading, HEADING_CHARS);
    const longer = path === '' ? short : `${short} > ${path}`;
    if (longer.length > PATH_CHARS) break;
    path = longer;
  }
  return path;
}

/** The text that is embedded for a chunk: title and heading path first, a line each, both of bounded length. */
export function embeddedText(title: string, headingPath: readonly string[], text: string): string {
  return [shortened(title, TITLE_CHARS), shortPath(headingPath), text].filter((line) => line !== '').join('\n');
}

/** The text whose words are searched for a chunk: title and heading path as they are, and the chunk. */
export function searchedText(title: string, headingPath: readonly string[], text: string): string {
  return [title, ...headingPath, text].join('\n');
}
