/**
 * What shows nothing, or turns the direction in which a text is read, and could make a reader approve something else than stands there: control
 * characters other than tab and line feed, and characters that are to be ignored by default, zero-width and bidi controls among them. Emoji use some: these
 * stay.
 */
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]|\ufe0f)\u200d(?=\p{Extended_Pictographic})|(?<=[\p{Extended_Pictographic}0-9#*])\ufe0f|([\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]|\p{Default_Ignorable_Code_Point})/gu;

/** A text without characters that nobody sees: the code point stands for each. A carriage return before a line feed is part of a line's end. */
export function visible(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(INVISIBLE, (whole, hidden: string | undefined) => {
    if (hidden === undefined) return whole;
    return `[U+${(hidden.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`;
  });
}
