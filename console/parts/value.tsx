import { lazy, Suspense } from 'react';
import type { Part } from '../../contracts/a2a/parts.js';
import { FileView } from './file.js';

/** Characters that one view shows at most; a browser could show no more at once. */
const SHOWN_MAX = 200_000;

/** A JSON value, indented. */
export function Json({ value }: { value: unknown }) {
  const text = JSON.stringify(value, null, 2) ?? '';
  const shown = text.slice(0, SHOWN_MAX);
  return (
    <pre className="code">
      {coloured(shown)}
      {shown.length < text.length && `\n… ${text.length - shown.length} characters more: read them over the API`}
    </pre>
  );
}

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Names, texts and other values in colours of their own. */
function coloured(text: string) {
  const pieces = [];
  let from = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [whole, quoted, colon] = match;
    const kind = colon !== undefined ? 'name' : quoted !== undefined ? 'text' : 'other';
    const piece = colon === undefined ? whole : (quoted ?? '');
    pieces.push(text.slice(from, match.index));
    pieces.push(
      <span key={match.index} className={`json-${kind}`}>
        {piece}
      </span>,
    );
    from = match.index + piece.length;
  }
  return [...pieces, text.slice(from)];
}

/** Members whose value differs between two objects, with both values. */
function changesBetween(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): { name: string; before: string | null; after: string | null }[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const textOf = (object: Record<string, unknown>, name: string) =>
    name in object ? (JSON.stringify(object[name]) ?? null) : null;
  return names
    .map((name) => ({ name, before: textOf(before, name), after: textOf(after, name) }))
    .filter((change) => change.before !== change.after);
}

/** What an edit changes, member by member. @param props.none said where nothing is changed */
export function Changes(props: { before: Record<string, unknown>; after: Record<string, unknown>; none?: string }) {
  const { before, after, none = 'Nothing is changed yet.' } = props;
  const changes = changesBetween(before, after);
  if (changes.length === 0) return <p className="quiet">{none}</p>;
  return (
    <dl className="changes">
      {changes.map(({ name, before: old, after: fresh }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {old !== null && <del>{old}</del>} {fresh !== null && <ins>{fresh}</ins>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

const Markdown = lazy(async () => ({ default: (await import('./markdown.js')).Markdown }));

/** A text as it is, or as Markdown once what reads that is loaded. */
function TextView({ text, markdown }: { text: string; markdown: boolean }) {
  const plain = <p className="prose">{text.slice(0, SHOWN_MAX)}</p>;
  if (!markdown || text.length > SHOWN_MAX) return plain;
  return (
    <Suspense fallback={plain}>
      <Markdown text={text} />
    </Suspense>
  );
}

function PartView({ part, markdown }: { part: Part; markdown: boolean }) {
  switch (part.kind) {
    case 'text':
      return <TextView text={part.text} markdown={markdown} />;
    case 'data':
      return <Json value={part.data} />;
    case 'file':
      return <FileView file={part.file} />;
    default:
      return part satisfies never;
  }
}

/** Parts of a message or an artifact. @param props.markdown texts are Markdown: not where somebody decides about what is shown */
export function Parts({ parts, markdown = false }: { parts: readonly Part[]; markdown?: boolean }) {
  if (parts.length === 0) return <p className="quiet">Nothing.</p>;
  // Parts have no ids, and never change their places.
  // biome-ignore lint/suspicious/noArrayIndexKey: see above
  return parts.map((part, index) => <PartView key={index} part={part} markdown={markdown} />);
}
