/**
 * Whether a sequence of items matches one of patterns, in which `many` stands for any number of items and `fits` compares any other pattern
 * with one. After a mismatch only the last `many` takes one item more: an earlier one could take nothing that the last could not.
 */
export function matchesSequence<Items extends string | readonly string[]>(
  patterns: Items,
  items: Items,
  many: string,
  fits: (pattern: string, item: string) => boolean,
): boolean {
  let at = 0;
  let place = 0;
  let manyAt = -1;
  let manyPlace = 0;
  while (place < items.length) {
    const pattern = patterns[at];
    if (pattern === many) {
      manyAt = at++;
      manyPlace = place;
    } else if (pattern !== undefined && fits(pattern, items[place] as string)) {
      at += 1;
      place += 1;
    } else if (manyAt >= 0) {
      at = manyAt + 1;
      place = ++manyPlace;
    } else return false;
  }
  while (patterns[at] === many) at += 1;
  return at === patterns.length;
}

const fitsChar = (pattern: string, char: string): boolean => pattern === '?' || pattern === char;

/** Whether a glob, in which `*` stands for any characters and `?` for one, matches a text. */
export function matchesGlob(glob: string, text: string): boolean {
  return matchesSequence(glob, text, '*', fitsChar);
}
