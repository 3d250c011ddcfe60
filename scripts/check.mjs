/** Runs all static checks, then prints one line for each. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const CHECKS = ['types', 'lint', 'layers', 'unused', 'lockfile', 'docs', 'clients'];
const root = join(import.meta.dirname, '..');

const results = CHECKS.map((name) => {
  const started = Date.now();
  const { status } = spawnSync('npm', ['run', '--silent', `check:${name}`], { cwd: root, stdio: 'inherit' });
  return { name, ok: status === 0, seconds: ((Date.now() - started) / 1000).toFixed(1) };
});

console.log('');
for (const { name, ok, seconds } of results) console.log(`${ok ? 'ok    ' : 'FAILED'} ${name.padEnd(8)} ${seconds} s`);
const failed = results.filter(({ ok }) => !ok);
console.log(failed.length === 0 ? 'check: all clean' : `check: ${failed.length} of ${results.length} failed`);
process.exitCode = failed.length === 0 ? 0 : 1;
