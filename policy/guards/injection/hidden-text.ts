// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const ASCII = /^[\x00-\x7f]*$/;
/** A flag of a region is drawn by tag characters, which otherwise hide text. */
const REGION_FLAG = /\u{1f3f4}[\u{e0020}-\u{e007e}]{1,6}\u{e007f}/gu;
const FLAG_BEGINNING = /\u{1f3f4}[\u{e0020}-\u{e007e}]{1,6}$/u;
/** Text that only a model reads: tag characters, or letters behind long runs of zero-width ones. */
const HIDDEN = /[\u{e0020}-\u{e007e}]{4}|[\u200b\u200c\u2060\ufeff]{16}/u;
/** Text that is shown in another order than it is read. */
const REORDERED = /[\u202d\u202e]/;

/** Whether a text holds what people cannot see. @param isComplete false: it goes on, and may end in half a flag */
export function isHidden(text: string, isComplete = true): boolean {
  if (ASCII.test(text)) return false;
  const withoutFlags = text.replace(REGION_FLAG, '');
  return REORDERED.test(text) || HIDDEN.test(isComplete ? withoutFlags : withoutFlags.replace(FLAG_BEGINNING, ''));
}

/** What may be the beginning of hidden text. */
const OF_HIDDEN = /^[\u{1f3f4}\u{e0020}-\u{e007f}\u200b\u200c\u2060\ufeff]$/u;
/** Characters of a beginning. A longer run that is not hidden text yet is a mix, and hides nothing. */
const BEGINNING_MAX = 64;

/** Follows a stream in which hidden text may have begun. */
export class HiddenRun {
  /** How many pieces at the end of the stream the beginning is in. */
  items = 0;
  #text = '';

  /** The beginning of hidden text with which the stream ends so far. */
  get rest(): string {
    return this.#text;
  }

  /** @returns the piece with what had begun before it */
  take(piece: string): string {
    const text = this.#text + piece;
    const end = beginningAt(text);
    const continues = end.length === text.length;
    this.items = end === '' ? 0 : continues ? this.items + 1 : 1;
    this.#text = end;
    return text;
  }
}

/** The beginning of hidden text that a text ends with. */
function beginningAt(text: string): string {
  let start = text.length;
  while (start > 0 && text.length - start <= BEGINNING_MAX) {
    const isPair = start > 1 && text.codePointAt(start - 2) !== text.charCodeAt(start - 2);
    const width = isPair ? 2 : 1;
    if (!OF_HIDDEN.test(text.slice(start - width, start))) return text.slice(start);
    start -= width;
  }
  return start === 0 ? text : '';
}
