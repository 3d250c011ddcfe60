import { createHash } from 'node:crypto';
import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import { type Html, html } from './html.js';

/** Values that become rows; a larger object is shown as its JSON, which has all of it too. */
const ROWS_MAX = 2_000;

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members => typeof value === 'object' && value !== null;
const membersOf = (value: Members): [string, unknown][] =>
  Object.entries(value).filter(([, member]) => member !== undefined);

/** How many values there are in a value, counted up to one more than `ROWS_MAX`. */
function countOf(value: unknown): number {
  if (!isMembers(value)) return 1;
  let count = 1;
  for (const member of Object.values(value)) {
    count += countOf(member);
    if (count > ROWS_MAX) break;
  }
  return count;
}

/** A text that would read as a value of another type is put in quotes. */
const looksOtherwise = (text: string) => /^(?:true|false|null|-?\d[\d.eE+-]*)$/.test(text);

function scalar(value: unknown): Html {
  if (value === '') return html`<i>an empty text</i>`;
  if (typeof value !== 'string') return html`${value === null ? html`<i>nothing</i>` : String(value)}`;
  return looksOtherwise(value) ? html`“${value}”` : html`${value}`;
}

function shown(value: unknown): Html {
  if (!isMembers(value)) return scalar(value);
  if (Array.isArray(value)) {
    if (value.length === 0) return html`<i>an empty list</i>`;
    return html`<ol>${value.map((item) => html`<li>${shown(item)}</li>`)}</ol>`;
  }
  const members = membersOf(value);
  if (members.length === 0) return html`<i>no members</i>`;
  return html`<dl>${members.map(([name, member]) => html`<dt>${name}</dt><dd>${shown(member)}</dd>`)}</dl>`;
}

/** An object as rows of name and value, nested ones indented. */
export function rowsOf(value: Members): Html {
  if (countOf(value) > ROWS_MAX) return html`<pre>${JSON.stringify(value, null, 1)}</pre>`;
  return html`<div class="rows">${shown(value)}</div>`;
}

/** Rows under a title; null where there are none. */
export function section(title: string, value: Members | undefined): Html | null {
  return value && membersOf(value).length > 0 ? html`<h3>${title}</h3>${rowsOf(value)}` : null;
}

/** A file as what identifies it: its content is no text that a page could show. */
function fileRows({ bytes, ...about }: Extract<Part, { kind: 'file' }>['file']): Html {
  if (bytes === undefined) return rowsOf(about);
  const content = Buffer.from(bytes, 'base64');
  const sha256 = createHash('sha256').update(content).digest('hex');
  return rowsOf({ ...about, size: `${content.length} bytes`, sha256 });
}

function partOf(part: Part): Html {
  switch (part.kind) {
    case 'text':
      return html`<pre>${part.text}</pre>`;
    case 'data':
      return html`<h3>Data</h3>${rowsOf(part.data)}`;
    case 'file':
      return html`<h3>File</h3>${fileRows(part.file)}`;
    default:
      return part satisfies never;
  }
}

/** Parts of a message or an artifact, whole. */
export function partsOf(parts: readonly Part[]): Html {
  return html`${parts.map((part) => html`${partOf(part)}${section('Metadata of this part', part.metadata)}`)}`;
}

/** An artifact, whole. */
export function artifactOf({ parts, ...about }: Artifact): Html {
  return html`${section('Artifact', about)}${partsOf(parts)}`;
}
