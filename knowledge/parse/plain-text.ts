import { cleaned, type Extracted } from './extracted.js';

/** Paragraphs, which empty lines divide. The text stays as it is. */
export function readPlainText(content: string): Extracted {
  const text = cleaned(content);
  const blocks: Extracted['blocks'] = [];
  const gap = /\n[^\S\n]*\n\s*/g;
  for (let start = 0; start < text.length; ) {
    const found = gap.exec(text);
    const end = found ? found.index : text.length;
    if (end > start) blocks.push({ kind: 'text', start, end });
    start = found ? gap.lastIndex : text.length;
  }
  return { text, blocks, pages: [] };
}
