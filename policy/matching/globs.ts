const WILDCARD = /[*?]/;

/** Whether a glob, in which `*` stands for any characters and `?` for one, matches a text. At most their lengths multiplied in steps. */
function matchesGlob(glob: string, text: string): boolean {
  return matchesSequence(glob, text, (of, at) => of[at] === '*', (one, other) => one === '?' || one === other);
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

/** Whether one of the globs matches. Those without a wildcard cost one look-up together. */
export function compileGlobs(globs: readonly string[]): (text: string) => boolean {
  const exact = new Set(globs.filter((glob) => !WILDCARD.test(glob)));
  const others = globs.filter((glob) => WILDCARD.test(glob));
  if (others.length === 0) return (text) => exact.has(text);
  return (text) => exact.has(text) || others.some((glob) => glob === '*' || matchesGlob(glob, text));
}

/** As `compileGlobs`, for paths: `*` and `?` stay within a segment, the segment `**` stands for any number of segments. */
export function compilePathGlobs(globs: readonly string[]): (path: string) => boolean {
  const patterns = globs.map((glob) => glob.split('/'));
  return (path) => {
    const segments = path.split('/');
    return patterns.some((pattern) => matchesSequence(pattern, segments, (of, at) => of[at] === '**', matchesGlob));
  };
}
