import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { processInfo } from '../../../embedded/process-table.js';
import { until } from '../until.js';

const run = promisify(execFile);

export interface TreeProcess {
  pid: number;
  command: string;
}

/** Everything that runs on this machine. */
async function allProcesses(): Promise<(TreeProcess & { parent: number })[]> {
  const { stdout } = await run('ps', ['-A', '-ww', '-o', 'pid=,ppid=,command='], { maxBuffer: 64 * 1024 * 1024 });
  return stdout.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line);
    return match ? [{ pid: Number(match[1]), parent: Number(match[2]), command: match[3] ?? '' }] : [];
  });
}

/** A process and everything below it, parents first. Empty when it has ended. */
export async function processTree(root: number): Promise<TreeProcess[]> {
  const all = await allProcesses();
  const tree = all.filter((process) => process.pid === root);
  for (const member of tree) tree.push(...all.filter((process) => process.parent === member.pid));
  return tree.map(({ pid, command }) => ({ pid, command }));
}

/** Ends these processes as `kill -9` does, in this order; those already gone are passed over. */
export function killEach(processes: readonly TreeProcess[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Resolves when none of them lives. */
export async function allEnded(processes: readonly TreeProcess[], timeoutMs = 30_000): Promise<void> {
  await until(
    async () => {
      const living = await Promise.all(processes.map(({ pid }) => processInfo(pid)));
      return living.every((info) => info === undefined);
    },
    { timeoutMs, what: `the end of processes ${processes.map(({ pid }) => pid).join(', ')}` },
  );
}

/** Notes a child in the run's register, so that the global teardown ends it should its file not have done so. */
export async function registerProcess(register: string, pid: number): Promise<void> {
  const info = await processInfo(pid);
  if (info) appendFileSync(register, `${pid} ${info.startedAt}\n`);
}

/** Kills the trees of all registered processes that still are the same, and servers on data of this run that lost their parent. */
export async function killRegistered(register: string): Promise<void> {
  const lines = existsSync(register) ? readFileSync(register, 'utf8').trim().split('\n') : [];
  for (const line of lines) {
    const [pid, startedAt] = [Number(line.slice(0, line.indexOf(' '))), line.slice(line.indexOf(' ') + 1)];
    const info = await processInfo(pid);
    if (info?.startedAt === startedAt) killEach(await processTree(pid));
  }
  const orphans = (await allProcesses()).filter(
    ({ parent, command }) => parent === 1 && command.includes(dirname(register)),
  );
  killEach(orphans);
  await allEnded(orphans);
}
