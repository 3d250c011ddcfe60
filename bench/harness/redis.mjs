/** A Redis server for benchmarks with several nodes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from '../../dist/embedded/free-port.js';

/** Starts a Redis server without persistence. @returns its address and process id */
export async function startRedis(harness) {
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  harness.onStop(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
  await new Promise((resolve, reject) => {
    child.once('error', reject); // not installed: Debian's package is redis-server
    child.stdout.on('data', (text) => String(text).includes('Ready to accept') && resolve());
  });
  return { url: `redis://127.0.0.1:${port}`, pid: child.pid };
}
