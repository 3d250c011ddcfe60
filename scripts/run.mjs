import { spawn } from 'node:child_process';

/** Runs a program, its output on standard error. Rejects unless it ends with 0. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 2, 2], ...options });
    child.once('error', (error) => reject(error.code === 'ENOENT' ? new Error(`${command} is not installed`) : error));
    child.once('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ended with ${signal ?? code}; see the lines above`));
    });
  });
}
