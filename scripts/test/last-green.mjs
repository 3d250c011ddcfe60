import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { userCacheDir } from '../../dist/runtime/cache-dir.js';

const HOUR_MS = 3_600_000;
/** Kept in the user's cache, because all checkouts share it. */
const path = join(userCacheDir(), 'test-all.json');

/** When `npm run test:all` was last green on this machine, in words. @param {string} root the checkout */
export function lastGreen(root) {
  if (!existsSync(path)) return 'never green on this machine';
  const { commit, at } = JSON.parse(readFileSync(path, 'utf8'));
  const hours = Math.floor((Date.now() - Date.parse(at)) / HOUR_MS);
  const age = hours < 48 ? `${hours} hours ago` : `${Math.floor(hours / 24)} days ago`;
  return `last green ${age} at ${commit.slice(0, 8)}${commit === headOf(root) ? ', this commit' : ''}`;
}

/** Notes that it is green now. @param {string} root the checkout */
export function noteGreen(root) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify({ commit: headOf(root), at: new Date().toISOString() })}\n`);
}

function headOf(root) {
  return execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
}
