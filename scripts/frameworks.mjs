/**
 * Installs the agent frameworks that the adapters of the SDK are checked and tested with, by their own lock file, into
 * `sdk/adapters/node_modules`: `npm run frameworks`, and before `npm run check`. `npm start` needs none of them.
 */
import { join } from 'node:path';
import { npmCi, timed, treeMatchesLock } from './npm-ci.mjs';
import { withPrepareLock } from './prepare-lock.mjs';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'sdk', 'adapters');
const print = (line) => process.stderr.write(`[frameworks] ${line}\n`);

async function install() {
  if (treeMatchesLock(folder)) return; // another command has installed them meanwhile
  print('installing the frameworks of the adapters (npm ci, 260 MB on disk) …');
  await timed('frameworks installed', 'npm ci', () => npmCi(folder, ['--include=dev']), print);
}

try {
  if (!treeMatchesLock(folder)) await withPrepareLock(root, install, print);
} catch (error) {
  print(error.message);
  process.exitCode = 1;
}
