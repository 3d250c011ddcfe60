import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { inject } from 'vitest';
import { freePort } from '../../../embedded/free-port.js';
import { cleanUp } from '../../setup/clean-up.js';
import { registerProcess } from '../../setup/platform/process-tree.js';

/** A Redis of one test, on a port of its own, with nothing on disk. */
export interface RedisServer {
  url: string;
  /** Ends the process at once, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same port, empty. */
  start(): Promise<void>;
}

async function spawnRedis(port: number): Promise<ChildProcess> {
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const ready = new Promise<void>((resolve, reject) => {
    child.once('error', reject); // not installed: Debian's package is redis-server
    child.once('exit', (code) => reject(new Error(`redis-server ended with code ${code} before it was ready`)));
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('Ready to accept connections')) resolve();
    });
  });
  await ready;
  // One that outlived its file would hold the run's standard error open, and with it the end of the run.
  if (child.pid !== undefined) await registerProcess(join(inject('runDir'), 'processes'), child.pid);
  return child;
}

/** Starts redis-server for the running test or, at the top of a file, for the file, and ends it afterwards; not for `beforeAll`. */
export async function redisServer(): Promise<RedisServer> {
  const port = await freePort();
  let child = await spawnRedis(port);
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  cleanUp(kill);
  return {
    url: `redis://127.0.0.1:${port}`,
    kill,
    start: async () => {
      child = await spawnRedis(port);
    },
  };
}
