/**
 * The console in Chromium: a cold load while many requests wait, and lists of many messages (docs/performance.md).
 *
 *     npm run bench:console -- [--rounds N]
 */
import { parseArgs } from 'node:util';
import { openBrowser } from './console/browser.mjs';
import { addMessages, addWaiting } from './console/rows.mjs';
import { Harness } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable, print, progress } from './harness/report.mjs';

const [WAITING, MESSAGES] = [10_000, 100_000];
/** What stands for a small computer. */
const THROTTLING = 4;
const [SCROLL_PIXELS, SCROLL_MS] = [600, 10_000];
/** The filters of the list of messages; the last two share no index with the others. */
const FILTERS = [
  ...['state=failed', 'agent_type=agent-3', 'error_code=LEDGER_AWAY', 'session_id=ses_over_77'],
  ...['since=2020-01-01', 'state=completed&agent_type=agent-4', 'text=order+4711', 'state=failed&text=order+90000'],
];

const { values: given } = parseArgs({ options: { rounds: { type: 'string', default: '20' } } });
const whole = (value) => Math.round(value).toLocaleString('en');

/** From an empty cache to the first request that can be decided. */
async function coldLoad(open, platform) {
  const page = await open(platform, THROTTLING);
  await page.goto('/console/inbox');
  const ms = await page.evaluate("measure.shown('form.answer')");
  await page.context().close();
  return ms;
}

async function coldLoads(open, platform) {
  const times = [];
  for (let round = 0; round < Number(given.rounds); round += 1) times.push(await coldLoad(open, platform));
  progress(times.map(whole).join(' '));
  return ['first decidable request', whole(quantile(times, 0.5)), whole(quantile(times, 0.95))];
}

/** Each filter once, one after the other. */
async function filters(page) {
  const rows = [];
  for (const filter of FILTERS) {
    const ms = await page.evaluate(`measure.filtered('${filter}')`);
    rows.push([`\`${filter}\``, whole(ms), '']);
  }
  return rows;
}

async function bench(harness) {
  const machine = machineLine();
  progress('starting a platform');
  const platform = await harness.platform('console', {});
  progress(`${WAITING} requests wait`);
  await addWaiting(platform, WAITING);
  const open = await openBrowser(harness);
  const rows = [await coldLoads(open, platform)];
  progress(`${MESSAGES} messages`);
  await addMessages(platform, MESSAGES);
  const page = await open(platform);
  await page.goto('/console/messages');
  await page.evaluate("measure.shown('.message-row')");
  rows.push(...(await filters(page)));
  await page.goto('/console/messages');
  await page.evaluate("measure.shown('.message-row')");
  const { frames, rows: loaded } = await page.evaluate(`measure.scrolled(${SCROLL_PIXELS}, ${SCROLL_MS})`);
  const slow = frames.filter((ms) => ms > 50).length;
  print(`${machine}\n\n${markdownTable(['', 'p50 ms', 'p95 ms'], rows)}\n`);
  print(
    `${whole(loaded)} rows were scrolled through: frames of ${whole(quantile(frames, 0.5))} ms, p99 ${whole(quantile(frames, 0.99))} ms, ${slow} of ${frames.length} above 50 ms`,
  );
  return 0;
}

process.exitCode = await Harness.run(bench);
