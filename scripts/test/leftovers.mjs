import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The variable by which the processes of a run are known, their children included. */
export const RUN = 'TEST_RUN_FOLDER';

/**
 * Ends what a run has left: a test process that was killed cannot stop the platforms that it started. Only where `/proc` tells the environment of
 * processes.
 * @param {string} folder of the run
 * @returns {number} how many there were
 */
export function endLeftovers(folder) {
  if (!existsSync('/proc/self/environ')) return 0;
  const left = readdirSync('/proc').filter(
    (pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid && isOf(pid, folder),
  );
  for (const pid of left) process.kill(Number(pid), 'SIGKILL');
  return left.length;
}

function isOf(pid, folder) {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`${RUN}=${folder}`);
  } catch {
    return false; // it has ended, or is somebody else's
  }
}
