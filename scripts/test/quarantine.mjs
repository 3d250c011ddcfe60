import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const DAY_MS = 86_400_000;
const AGE_MAX_DAYS = 14;
const ENTRIES_MAX = 5;

/** @returns {{ test: string, cause: string, since: string }[]} the tests that are known to fail by chance; `test` is `file > name` */
function entries(root) {
  return JSON.parse(readFileSync(join(root, 'test', 'quarantine.json'), 'utf8'));
}

/** What is known of a failure that did not come again, for the end of its line. @param {string} root @param {string} text `file > name: message` */
export function knownFlaky(root, text) {
  const known = entries(root).find(({ test }) => text.startsWith(`${test}:`));
  return known
    ? ` (known since ${known.since}: ${known.cause})`
    : ' (new: find its cause, or note it in test/quarantine.json)';
}

/** What is wrong with the list, a line each: too many entries, and those that have been there for too long. @param {string} root */
export function quarantineProblems(root) {
  const oldest = Date.now() - AGE_MAX_DAYS * DAY_MS;
  const all = entries(root);
  const tooMany =
    all.length > ENTRIES_MAX ? [`test/quarantine.json: ${all.length} entries, at most ${ENTRIES_MAX}`] : [];
  const late = all
    .filter(({ since }) => Date.parse(since) < oldest)
    .map(
      ({ test, since }) =>
        `test/quarantine.json: ${test} has been there since ${since}, for more than ${AGE_MAX_DAYS} days`,
    );
  return [...tooMany, ...late];
}
