import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { errorMessage } from '../runtime/errors.js';
import type { Running } from './supervisor.js';

/** The user and group that a program runs as. */
export interface Identity {
  uid: number;
  gid: number;
}

export interface ServerCommand {
  file: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  /** Receives standard output and error. A file and not a pipe, because the server outlives a killed parent. */
  logFile: string;
  identity?: Identity;
}

/**
 * Starts a server in a separate process group, so that Ctrl-C in a terminal does not reach it before the platform has drained. Resolves
 * when the process runs; it may not answer yet.
 */
export async function spawnServer(command: ServerCommand): Promise<Running> {
  const log = await open(command.logFile, 'a', 0o600);
  try {
    const child = spawn(command.file, command.args, {
      cwd: '/',
      env: command.env,
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      ...command.identity,
    });
    const ended = new Promise<string>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error) => reject(new Error(`cannot run ${command.file}: ${errorMessage(error)}`)));
    });
    if (child.pid === undefined) throw new Error(`cannot run ${command.file}`);
    return { pid: child.pid, ended };
  } finally {
    await log.close();
  }
}
