import { visible } from '../../contracts/visible-text.js';

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Markup that is safe to send as it is. */
export class Html {
  constructor(readonly markup: string) {}
}

type Content = string | number | boolean | Html | null | undefined | readonly Content[];

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
