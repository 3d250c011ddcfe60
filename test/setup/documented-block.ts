import { readFileSync } from 'node:fs';

/** The code block of a page in `docs/` that holds this text, so that tests run what readers are told to run. @throws unless there is exactly one */
export function documentedBlock(page: string, language: string, holding: string): string {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/^ *```(\w+)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, of, body]) => of === language && body?.includes(holding))
    .map(([, , body]) => body ?? '');
  if (blocks.length !== 1) throw new Error(`${blocks.length} blocks of ${page} hold ${holding}`);
  const [block] = blocks as [string];
  return block.replaceAll(new RegExp(`^${/^ */.exec(block)?.[0]}`, 'gm'), '');
}
