import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const FOLDERS =
  `agents api auth contracts db deliveries embedded http mesh messages platform runtime sdk sessions telemetry tools
  workflows`.split(/\s+/);
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

const readDocument = (name: string): string => readFileSync(join(root, 'docs', name), 'utf8');

test('every message that the documentation explains is one that the source gives', () => {
  // Texts that are too long for a line of source are put together from two.
  const source = FOLDERS.flatMap(sourcesBelow)
    .join('\n')
    .replace(/' \+\s*'/g, '')
    .replaceAll("\\'", "'");
  const [, alerts = ''] = /^Lines that deserve an alert:\n([\s\S]*?)^## /m.exec(readDocument('operations.md')) ?? [];
  const fromOperations = quotedMessages(alerts);
  expect(fromOperations.length).toBeGreaterThan(4);
  const quoted = [...quotedMessages(readDocument('troubleshooting.md')), ...fromOperations];
  expect(quoted.length).toBeGreaterThan(50);
  const pieces = quoted.flatMap((message) => message.split('…').map((piece) => piece.trim()));
  const unknown = pieces.filter((piece) => piece.length >= PIECE_CHARS_MIN && !source.includes(piece));
  expect(unknown).toEqual([]);
});
