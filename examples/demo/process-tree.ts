import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A process and everything that it started, parents first. */
async function treeOf(root: number): Promise<number[]> {
  const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid=']);
  const all = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  const tree = [root];
  for (const member of tree) tree.push(...all.filter(([, parent]) => parent === member).map(([pid = 0]) => pid));
  return tree;
}

/** `kill -9` of a process and of everything that it started. @returns how many processes were killed */
export async function killTree(root: number): Promise<number> {
  const tree = await treeOf(root);
  for (const pid of tree) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has ended by itself
    }
  }
  return tree.length;
}
