import { PARSE_BOUNDS, tooMuchText } from './bounds.js';
import { cleaned, type Extracted, TextBuilder } from './extracted.js';
import { ParseError } from './parse-error.js';

const DEPTH_MAX = 64;
/** A value whose JSON is at most so long stays together as one record. */
const RECORD_CHARS = 600;

type Walk = { value: unknown; path: string; depth: number };

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** One line for a small value: `path.member: value; …`. */
function recordOf(value: unknown, path: string): string {
  if (!isContainer(value)) return path === '' ? String(value) : `${path}: ${String(value)}`;
  const members = Object.entries(value).map(([name, member]) => {
    const shown = isContainer(member) ? JSON.stringify(member) : String(member);
    return Array.isArray(value) ? shown : `${name}: ${shown}`;
  });
  const line = members.join('; ');
  return path === '' ? line : `${path}: ${line}`;
}

/** Whether the JSON of a value is short, without making all of it. */
function isSmall(value: unknown): boolean {
  let left = RECORD_CHARS;
  const stack = [value];
  while (stack.length > 0 && left > 0) {
    const next = stack.pop();
    if (isContainer(next)) {
      for (const [name, member] of Object.entries(next)) {
        left -= name.length + 4;
        stack.push(member);
        if (left <= 0) break;
      }
    } else left -= String(next).length;
  }
  return left > 0;
}

/** JSON: values that are small enough become a line each, with their path; larger ones are divided. */
export function readJson(content: string): Extracted {
  const text = cleaned(content);
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    throw new ParseError('DAMAGED', 'The document is not valid JSON.');
  }
  const builder = new TextBuilder(PARSE_BOUNDS.textChars, tooMuchText);
  const stack: Walk[] = [{ value: root, path: '', depth: 0 }];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value, path, depth } = next;
    if (!isContainer(value) || isSmall(value)) builder.add('row', recordOf(value, path));
    else if (depth >= DEPTH_MAX) throw new ParseError('TOO_LARGE', `The JSON is nested deeper than ${DEPTH_MAX}.`);
    else {
      const list = Array.isArray(value);
      const members = Object.entries(value).map(([name, member]) => {
        const place = list ? `${path}[${name}]` : `${path}${path === '' ? '' : '.'}${name}`;
        return { value: member, path: place, depth: depth + 1 };
      });
      for (const member of members.reverse()) stack.push(member);
    }
  }
  return builder.build();
}
