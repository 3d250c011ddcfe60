import { matchesGlob, matchesSequence } from '../../contracts/globs.js';
import type { Budget } from './budget.js';

const WILDCARD = /[*?]/;

/** Whether one of some globs matches a text; undefined: it would cost too much to find out. */
export type GlobTest = (text: string, budget: Budget) => boolean | undefined;

/** One glob, ready to be asked. */
interface Pattern {
  test(text: string): boolean;
  /** Units for one character of the text. */
  charCost: number;
}

/** As `matchesGlob`, over the segments of a path: `**` stands for any number of them. */
function matchesSegments(globs: readonly string[], segments: readonly string[]): boolean {
  return matchesSequence(globs, segments, '**', matchesGlob);
}

function compileGlob(glob: string): Pattern {
  const [start = '', end = '', ...more] = glob.split('*');
  if (more.length > 0 || glob.includes('?'))
    return { test: (text) => matchesGlob(glob, text), charCost: glob.length / 4 };
  const least = start.length + end.length;
  const test = (text: string) => text.length >= least && text.startsWith(start) && text.endsWith(end);
  return { test, charCost: 0.1 };
}

function compilePathGlob(glob: string): Pattern {
  const folder = glob.slice(0, -'/**'.length);
  const inFolder = `${folder}/`;
  if (glob.endsWith('/**') && !WILDCARD.test(folder))
    return { test: (path) => path === folder || path.startsWith(inFolder), charCost: 0.1 };
  const globs = glob.split('/');
  return { test: (path) => matchesSegments(globs, path.split('/')), charCost: glob.length / 4 };
}

/** Compiles globs. Those without a wildcard cost one look-up together. */
function compileWith(globs: readonly string[], compile: (glob: string) => Pattern): GlobTest {
  const exact = new Set(globs.filter((glob) => !WILDCARD.test(glob)));
  const patterns = globs.filter((glob) => WILDCARD.test(glob)).map(compile);
  return (text, budget) => {
    if (!budget.take(1)) return undefined;
    if (exact.has(text)) return true;
    for (const { test, charCost } of patterns) {
      if (!budget.take(1 + text.length * charCost)) return undefined;
      if (test(text)) return true;
    }
    return false;
  };
}

/** A test that is passed by texts which match one of the globs: `*` stands for any characters, `?` for one. */
export function compileGlobs(globs: readonly string[]): GlobTest {
  return compileWith(globs, compileGlob);
}

/** As `compileGlobs`, for paths: `*` and `?` stay within a segment, the segment `**` stands for any number of segments. */
export function compilePathGlobs(globs: readonly string[]): GlobTest {
  return compileWith(globs, compilePathGlob);
}
