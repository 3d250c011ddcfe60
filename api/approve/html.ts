const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Markup that is safe to send as it is. */
export class Html {
  constructor(readonly markup: string) {}
}

type Content = string | number | boolean | Html | null | undefined | readonly Content[];

/**
 * What shows nothing, or turns the direction in which a text is read, and could make a reader approve something else than stands there: control
 * characters other than tab and line feed, and characters that are to be ignored by default, zero-width and bidi controls among them. Emoji use some: these
 * stay.
 */
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]|\ufe0f)\u200d(?=\p{Extended_Pictographic})|(?<=[\p{Extended_Pictographic}0-9#*])\ufe0f|([\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]|\p{Default_Ignorable_Code_Point})/gu;

/** A text without characters that nobody sees: the code point stands for each. A carriage return before a line feed is part of a line's end. */
function visible(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(INVISIBLE, (whole, hidden: string | undefined) => {
    if (hidden === undefined) return whole;
    return `[U+${(hidden.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`;
  });
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');

/** A text exactly as somebody typed it, for an input that is sent again. */
export const asTyped = (text: string): Html => new Html(escaped(text));

function markupOf(content: Content, show: (text: string) => string): string {
  if (content === null || content === undefined || typeof content === 'boolean') return '';
  if (content instanceof Html) return content.markup;
  if (typeof content === 'object') return content.map((each) => markupOf(each, show)).join('');
  return escaped(show(String(content)));
}

/**
 * Markup with values in it. Text is escaped, and what is invisible in it is shown; in an attribute, which goes back to the server or is read by
 * the browser, it stays as it is. What is `Html` already stays.
 */
export function html(parts: TemplateStringsArray, ...contents: Content[]): Html {
  return new Html(
    parts.reduce((markup, part, index) => {
      const show = parts[index - 1]?.endsWith('="') ? (text: string) => text : visible;
      return markup + markupOf(contents[index - 1], show) + part;
    }),
  );
}
