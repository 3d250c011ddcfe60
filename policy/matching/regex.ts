import { RE2JS } from '@bufbuild/re2';
import { PlatformError } from '../../runtime/errors.js';

/** Instructions of a compiled expression. RE2 looks at each of them for each character at most. */
const PROGRAM_MAX = 500;

/** A regular expression without backtracking (RE2). */
export interface Regex {
  /** Whether it matches a part of the text. */
  test(text: string): boolean;
  /** The cost of one character, in the units of `Budget`. */
  charCost: number;
}

/** @throws PlatformError BAD_REQUEST for one that RE2 does not know, or that is too large */
export function compileRegex(source: string): Regex {
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(source);
  } catch (error) {
    throw new PlatformError('BAD_REQUEST', `The regular expression is not one of RE2: ${source}`, { cause: error });
  }
  const size = compiled.re2().prog.numInst();
  if (size > PROGRAM_MAX) throw new PlatformError('BAD_REQUEST', `The regular expression is too large: ${source}`);
  return { test: (text) => compiled.test(text), charCost: 3 * size };
}
