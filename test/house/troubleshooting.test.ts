import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const FOLDERS = [
  'agents',
  'api',
  'auth',
  'contracts',
  'db',
  'deliveries',
  'embedded',
  'http',
  'mesh',
  'messages',
  'platform',
  'runtime',
  'sdk',
  'sessions',
  'tools',
  'workflows',
];
/** Shorter ones would be found by chance. */
const PIECE_CHARS_MIN = 8;

function sourcesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.parentPath.includes('node_modules'))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
}

/** What the first column of the tables quotes. */
function quotedMessages(page: string): string[] {
  const symptoms = page
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) => line.split(' | ')[0] ?? '');
  return symptoms.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''));
}

test('every message that docs/troubleshooting.md explains is one that the source gives', () => {
  // Texts that are too long for a line of source are put together from two.
  const source = FOLDERS.flatMap(sourcesBelow)
    .join('\n')
    .replace(/' \+\s*'/g, '')
    .replaceAll("\\'", "'");
  const quoted = quotedMessages(readFileSync(join(root, 'docs', 'troubleshooting.md'), 'utf8'));
  expect(quoted.length).toBeGreaterThan(50);
  const pieces = quoted.flatMap((message) => message.split('…').map((piece) => piece.trim()));
  const unknown = pieces.filter((piece) => piece.length >= PIECE_CHARS_MIN && !source.includes(piece));
  expect(unknown).toEqual([]);
});
