/**
 * `npm run conformance:a2a -- FOLDER [pytest arguments]`: runs the public A2A conformance kit in FOLDER (a2aproject/a2a-tck, branch 0.3.x or
 * 1.0-dev) against a new platform with a hosted agent. Needs Python 3.11 or newer. Exits with 1 when a required test fails, with 2 when the
 * kit could not be run.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Platform } from '../bench/harness/platform.mjs';
import { userCacheDir } from '../dist/runtime/cache-dir.js';
import { startAgent } from './conformance-a2a/agent.mjs';
import { kitIn, pythonFor, runCategory } from './conformance-a2a/kit.mjs';
import { hasFailed, reportOf } from './conformance-a2a/report.mjs';

/** Starts the agent and the platform, and registers the agent. Adds a stop function for each to `stops`, also when this fails. */
async function startPlatform(dataDir, stops) {
  const agent = await startAgent();
  stops.push(() => agent.close());
  const platform = new Platform(dataDir, { FLEET_LOG_LEVEL: 'warn' });
  stops.push(() => platform.stop());
  await platform.ready();
  const hosted = { agent_type: 'conformance', instance_id: 'conformance-1', public_url: agent.url };
  await platform.post('/agents/register', { ...hosted, max_concurrent_sessions: 0 });
  return { baseUrl: platform.dev.base_url, token: platform.token };
}

async function main([folderArgument, ...extra], signal) {
  if (!folderArgument) throw new Error('Usage: npm run conformance:a2a -- FOLDER [pytest arguments]');
  const folder = resolve(folderArgument);
  const kit = kitIn(folder);
  const python = await pythonFor(folder, userCacheDir(), signal);
  const dataDir = mkdtempSync(join(tmpdir(), 'a2a-conformance-'));
  const stops = [() => rmSync(dataDir, { recursive: true, force: true })];
  try {
    console.log(`${kit.name}: starting a platform …`);
    const platform = await startPlatform(dataDir, stops);
    const runs = [];
    for (const category of kit.categories) {
      signal.throwIfAborted();
      console.log(`\n${kit.name}: ${category.name}`);
      const resultsFile = join(dataDir, 'results.jsonl');
      const results = await runCategory({ kit, category, folder, python, platform, resultsFile, extra, signal });
      runs.push({ category, results });
    }
    console.log(reportOf(runs));
    return hasFailed(runs) ? 1 : 0;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

const interrupted = new AbortController();
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => interrupted.abort());

main(process.argv.slice(2), interrupted.signal).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    console.error(interrupted.signal.aborted ? 'stopped' : error.message);
    process.exitCode = 2;
  },
);
