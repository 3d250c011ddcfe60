/** The results of a kit: a table, and the tests that did not pass. */

const OUTCOMES = ['passed', 'failed', 'skipped', 'xfailed'];

function count(results, outcome) {
  return results.filter((result) => result.outcome === outcome).length;
}

function row(name, results) {
  const counts = OUTCOMES.map((outcome) => String(count(results, outcome)).padStart(8));
  return `${name.padEnd(14)}${counts.join('')}`;
}

function firstLine(reason) {
  return reason.split('\n')[0].slice(0, 160);
}

/** Test names, grouped by their reason. */
function byReason(results) {
  const reasons = [...new Set(results.map(({ reason }) => firstLine(reason)))];
  return reasons.flatMap((reason) => [
    `  ${reason}`,
    ...results.filter((result) => firstLine(result.reason) === reason).map(({ test }) => `      ${test}`),
  ]);
}

/**
 * The report of a run.
 * @param {{ category: { name: string }, results: { test: string, outcome: string, reason: string }[] }[]} runs
 */
export function reportOf(runs) {
  const head = `${''.padEnd(14)}${OUTCOMES.map((outcome) => outcome.padStart(8)).join('')}`;
  const lines = ['', head, ...runs.map(({ category, results }) => row(category.name, results))];
  for (const outcome of ['failed', 'xfailed', 'skipped']) {
    const named = runs.flatMap(({ results }) => results.filter((result) => result.outcome === outcome));
    if (named.length > 0) lines.push('', `${outcome}:`, ...byReason(named));
  }
  return lines.join('\n');
}

/** Whether a test of a required category failed. */
export function hasFailed(runs) {
  return runs.some(({ category, results }) => category.required && count(results, 'failed') > 0);
}
