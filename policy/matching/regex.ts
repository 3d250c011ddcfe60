import { RE2JS } from '@bufbuild/re2';
import { PlatformError } from '../../runtime/errors.js';
import { regexWork } from './regex-work.js';

/** Instructions of a compiled expression. RE2 looks at each of them for each character at most. */
const PROGRAM_MAX = 500;
/** Microseconds that compiling one may take, by `regexWork`, and all of one policy's expression together. */
const WORK_MAX = 5_000;
const WORK_OF_ALL_MAX = 10_000;
/** Lists of parts that are kept of an expression, and texts in each. */
const PARTS_MAX = 3;
const TEXTS_MAX = 16;

/** A regular expression without backtracking (RE2). */
export interface Regex {
  /** Whether it matches a part of the text. */
  test(text: string): boolean;
  /** The cost of one character, in the units of `Budget`. */
  charCost: number;
  /** A text that matches contains one text of each list. */
  parts: readonly (readonly string[])[];
}

/** What RE2 looks for in a text before it runs an expression. */
type Prefilter = NonNullable<ReturnType<RE2JS['re2']>['prefilter']>;

/** The values of RE2JS's `Prefilter.Type`, which it does not export. */
const TEXT = 1;
const ALL = 2;
const ONE = 3;

function partsOf({ type, str, subs }: Prefilter): string[][] {
  if (type === TEXT) return [[str]];
  if (type === ALL) return subs.flatMap(partsOf);
  const ofEach = subs.map((sub) => partsOf(sub)[0]);
  return type !== ONE || ofEach.includes(undefined) ? [] : [ofEach.flatMap((parts) => parts ?? [])];
}

const shortest = (parts: readonly string[]): number => Math.min(...parts.map(({ length }) => length));

/** The longest parts: they rule out most texts, and there may be hundreds. */
function longestParts(prefilter: Prefilter | null): string[][] {
  const all = prefilter ? partsOf(prefilter).filter((texts) => texts.length <= TEXTS_MAX) : [];
  return all.sort((one, other) => shortest(other) - shortest(one)).slice(0, PARTS_MAX);
}

/** @throws PlatformError BAD_REQUEST for one that RE2 does not know, that is too large, or that would take too long to compile */
export function compileRegex(source: string): Regex {
  if (regexWork(source) > WORK_MAX)
    throw new PlatformError('BAD_REQUEST', `The regular expression is too large: ${source}`);
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(source);
  } catch (error) {
    throw new PlatformError('BAD_REQUEST', `The regular expression is not one of RE2: ${source}`, { cause: error });
  }
  const { prog, prefilter } = compiled.re2();
  const size = prog.numInst();
  if (size > PROGRAM_MAX) throw new PlatformError('BAD_REQUEST', `The regular expression is too large: ${source}`);
  return { test: (text) => compiled.test(text), charCost: 3 * size, parts: longestParts(prefilter) };
}

/** The regular expressions of one CEL expression: each is compiled once, before the first decision. */
export class Regexes {
  readonly #compiled = new Map<string, Regex>();
  #work = 0;

  /** @throws PlatformError BAD_REQUEST as `compileRegex`, and where all of them together would take too long */
  compile(source: string): Regex {
    const known = this.#compiled.get(source);
    if (known) return known;
    this.#work += regexWork(source);
    if (this.#work > WORK_OF_ALL_MAX)
      throw new PlatformError('BAD_REQUEST', 'evaluator.expression: its regular expressions are too large together.');
    const regex = compileRegex(source);
    this.#compiled.set(source, regex);
    return regex;
  }
}
