import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { EVENT_CATEGORIES, EVENT_PAYLOADS, EVENT_TYPES, type EventType } from '../../contracts/events.js';

const document = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'events.md'), 'utf8');

interface FieldSchema {
  type?: string;
  enum?: string[];
  const?: string;
  anyOf?: FieldSchema[];
}

/** A field as the table shows it: text has no note. */
function shownField(name: string, schema: FieldSchema): string {
  const notes = schema.anyOf?.some(({ type }) => type === 'null') ? ['or null'] : [];
  if (schema.type === 'integer') notes.unshift('integer');
  const values = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
  if (values.length > 0) notes.unshift(values.join(', '));
  return notes.length > 0 ? `\`${name}\` (${notes.join(' ')})` : `\`${name}\``;
}

function rowOf(type: EventType): string {
  const { properties, description } = z.toJSONSchema(EVENT_PAYLOADS[type]);
  const fields = Object.entries(properties ?? {}).map(([name, schema]) => shownField(name, schema as FieldSchema));
  return `| \`${type}\` | ${description} | ${fields.join(', ')} |`;
}

test('docs/events.md lists every event type with its fields, and no other', () => {
  const rows = document.split('\n').filter((line) => /^\| `\w+\.\w+` \|/.test(line));
  expect(rows.filter((row) => !row.startsWith('| `stream.'))).toEqual(EVENT_TYPES.map(rowOf));
});

test('every type belongs to a category of the specification', () => {
  const categories = new Set(EVENT_TYPES.map((type) => type.split('.')[0]));
  expect([...categories].sort()).toEqual([...EVENT_CATEGORIES].sort());
});
