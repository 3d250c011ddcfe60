import type { Budget } from './budget.js';

const WILDCARD = /[*?]/;

/** Whether a glob, in which `*` stands for any characters and `?` for one, matches a text. At most their lengths multiplied in steps. */
function matchesGlob(glob: string, text: string): boolean {
  return matchesSequence(
    glob,
    text,
    (of, at) => of[at] === '*',
    (one, other) => one === '?' || one === other,
  );
}

/**
 * Matches a sequence with wildcards against another. After a mismatch only the last wildcard takes one item more: an earlier one could take
 * nothing that the last could not.
 */
function matchesSequence<Items extends string | readonly string[]>(
  pattern: Items,
  items: Items,
  isWildcard: (of: Items, at: number) => boolean,
  fits: (one: string, other: string) => boolean,
): boolean {
  let at = 0;
  let place = 0;
  let wildcardAt = -1;
  let wildcardPlace = 0;
  while (place < items.length) {
    if (at < pattern.length && isWildcard(pattern, at)) {
      wildcardAt = at++;
      wildcardPlace = place;
    } else if (at < pattern.length && fits(pattern[at] as string, items[place] as string)) {
      at += 1;
      place += 1;
    } else if (wildcardAt >= 0) {
      at = wildcardAt + 1;
      place = ++wildcardPlace;
    } else return false;
  }
  while (at < pattern.length && isWildcard(pattern, at)) at += 1;
  return at === pattern.length;
}

/** Whether one of some globs matches a text; undefined: it would cost too much to find out. */
export type GlobTest = (text: string, budget: Budget) => boolean | undefined;

/** With one wildcard each character is looked at once, with several as often as the glob is long. */
function costOf(glob: string, text: string): number {
  const steps = glob.split('*').length > 2 ? glob.length * text.length : glob.length + text.length;
  return 1 + steps / 4;
}

/** One by one, until one matches or the budget is spent. */
function someMatch(globs: readonly string[], text: string, budget: Budget, test: (glob: string) => boolean) {
  for (const glob of globs) {
    if (!budget.take(costOf(glob, text))) return undefined;
    if (test(glob)) return true;
  }
  return false;
}

/** Those without a wildcard cost one look-up together. */
export function compileGlobs(globs: readonly string[]): GlobTest {
  const exact = new Set(globs.filter((glob) => !WILDCARD.test(glob)));
  const others = globs.filter((glob) => WILDCARD.test(glob));
  if (others.length === 0) return (text) => exact.has(text);
  return (text, budget) => exact.has(text) || someMatch(others, text, budget, (glob) => matchesGlob(glob, text));
}

/** As `compileGlobs`, for paths: `*` and `?` stay within a segment, the segment `**` stands for any number of segments. */
export function compilePathGlobs(globs: readonly string[]): GlobTest {
  const patterns = new Map(globs.map((glob) => [glob, glob.split('/')]));
  return (path, budget) => {
    const segments = path.split('/');
    const isWildcard = (of: readonly string[], at: number) => of[at] === '**';
    return someMatch(globs, path, budget, (glob) =>
      matchesSequence(patterns.get(glob) ?? [], segments, isWildcard, matchesGlob),
    );
  };
}
