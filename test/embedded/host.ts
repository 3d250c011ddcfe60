import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { createLogger } from '../../runtime/logger.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A logger that writes nothing, for servers under test. */
export const silent = createLogger({ level: 'silent' });

/** A new folder under the system's temporary folder, and how to remove it. */
export async function scratch(): Promise<{ dir: string; remove(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'embedded-'));
  return { dir, remove: () => rm(dir, { recursive: true, force: true, maxRetries: 5 }) };
}

/** Servers start on a busy machine. */
export const WITHIN_A_MINUTE = { timeoutMs: 60_000 };

/**
 * Runs a module in a Node process of its own, resolves with the first line it prints, and leaves it running. The module imports from
 * `./embedded/` and finds the argument in `process.argv[2]`.
 */
export async function inOwnProcess(module: string, argument: string): Promise<{ line: string; kill(): Promise<void> }> {
  const file = join(root, 'node_modules', '.cache', `embedded-${randomUUID()}.mjs`);
  await build({
    stdin: { contents: module, resolveDir: root, loader: 'ts' },
    outfile: file,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
  });
  const child = spawn(process.execPath, [file, argument], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  let printed = '';
  for await (const chunk of child.stdout) {
    printed += String(chunk);
    if (printed.includes('\n')) break;
  }
  await rm(file);
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  return { line: printed.trim(), kill };
}
