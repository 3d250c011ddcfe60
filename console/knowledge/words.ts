import type { DocumentInput } from '../../contracts/api/knowledge/knowledge.js';
import type { SearchResult } from '../../contracts/api/knowledge/knowledge-query.js';
import { numberText } from '../parts/texts.js';

/** `820 bytes`, `1.4 kB`, `3.2 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const [size, unit] = bytes < 1_000_000 ? [bytes / 1_000, 'kB'] : [bytes / 1_000_000, 'MB'];
  return `${size.toLocaleString('en', { maximumFractionDigits: 1 })} ${unit}`;
}

/** Where in its source a result stands: headings, pages, and the characters where nothing else says. */
export function placeText({ citation }: Pick<SearchResult, 'citation'>): string {
  const { heading_path, page_start, page_end, char_start, char_end } = citation;
  const pages =
    page_start === undefined
      ? []
      : [
          page_end === undefined || page_end === page_start
            ? `page ${page_start}`
            : `pages ${page_start} to ${page_end}`,
        ];
  const said = [...(heading_path.length > 0 ? [heading_path.join(' › ')] : []), ...pages];
  return said.join(', ') || `characters ${numberText(char_start)} to ${numberText(char_end)}`;
}

/** What somebody has filled in for a new source. `file`: in base64. */
export interface SourceForm {
  kind: 'text' | 'url' | 'file';
  text: string;
  url: string;
  file: { name: string; base64: string } | null;
  title: string;
  tags: string;
}

/** The document of a form; null while something is missing. */
export function documentOf({ kind, text, url, file, title, tags }: SourceForm): DocumentInput | null {
  const list = tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
  const about = {
    ...(title.trim() !== '' && { title: title.trim() }),
    ...(list.length > 0 && { tags: [...new Set(list)] }),
  };
  if (kind === 'text') return text.trim() === '' ? null : { content: text, ...about };
  if (kind === 'url') return url.trim() === '' ? null : { url: url.trim(), ...about };
  return file && { source_id: file.name, filename: file.name, content_base64: file.base64, ...about };
}
