/**
 * `npm run conformance:a2a -- FOLDER [pytest arguments]`: the public A2A conformance kit (a2aproject/a2a-tck, branch 0.3.x or 1.0-dev,
 * whichever the folder holds) against a platform of its own with a hosted agent behind it. Needs python3, 3.11 or newer. The exit code is
 * 1 when a test fails that must pass, 2 when the kit could not be run.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Platform } from '../bench/harness/platform.mjs';
import { startAgent } from './conformance-a2a/agent.mjs';
import { kitIn, pythonFor, runCategory } from './conformance-a2a/kit.mjs';
import { hasFailed, reportOf } from './conformance-a2a/report.mjs';

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'agent-fleet');

/** Starts the agent and the platform, and brings them together. What was started is in `parts`, also when this fails. */
async function startGround(dataDir, parts) {
  const agent = await startAgent();
  parts.push(() => agent.close());
  const platform = new Platform(dataDir, { FLEET_LOG_LEVEL: 'warn' });
  parts.push(() => platform.stop());
  await platform.ready();
  const hosted = { agent_type: 'conformance', instance_id: 'conformance-1', public_url: agent.url };
  await platform.post('/agents/register', { ...hosted, max_concurrent_sessions: 0 });
  return { baseUrl: platform.dev.base_url, token: platform.token };
}

async function main([folderGiven, ...extra], signal) {
  if (!folderGiven) throw new Error('Usage: npm run conformance:a2a -- FOLDER [pytest arguments]');
  const folder = resolve(folderGiven);
  const kit = kitIn(folder);
  const python = await pythonFor(folder, CACHE, signal);
  const dataDir = mkdtempSync(join(tmpdir(), 'a2a-conformance-'));
  const parts = [() => rmSync(dataDir, { recursive: true, force: true })];
  try {
    console.log(`${kit.name}: starting a platform …`);
    const platform = await startGround(dataDir, parts);
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
    for (const stop of parts.reverse()) await stop();
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
