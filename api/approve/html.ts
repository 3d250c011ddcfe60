const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Markup that is safe to send as it is. */
export class Html {
  constructor(readonly markup: string) {}
}

type Content = string | number | Html | null | undefined | false | readonly Content[];

function markupOf(content: Content): string {
  if (content === null || content === undefined || content === false) return '';
  if (content instanceof Html) return content.markup;
  if (typeof content === 'object') return content.map(markupOf).join('');
  return String(content).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/** Markup with values in it. Text is escaped, for content and for attributes in quotes; what is `Html` already stays. */
export function html(parts: TemplateStringsArray, ...contents: Content[]): Html {
  return new Html(parts.reduce((markup, part, index) => markup + markupOf(contents[index - 1]) + part));
}
