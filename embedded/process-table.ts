import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A running process. `startedAt` differs between two processes with the same pid; compare it only for equality. */
export interface ProcessInfo {
  pid: number;
  startedAt: string;
  /** The command line, arguments separated by blanks. */
  command: string;
}

/** The process with a pid; undefined without one. A zombie counts as ended. */
export async function processInfo(pid: number): Promise<ProcessInfo | undefined> {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

/** Whether the same process, and not another one with its pid, is still running. */
export async function isSameProcess(known: Pick<ProcessInfo, 'pid' | 'startedAt'>): Promise<boolean> {
  return (await processInfo(known.pid))?.startedAt === known.startedAt;
}

async function fromProc(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in brackets and may itself hold blanks and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, startTicks] = [fields[0], fields[19]];
    if (state === undefined || startTicks === undefined || 'ZXx'.includes(state)) return undefined;
    const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim();
    return { pid, startedAt: startTicks, command };
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ESRCH';
}

const PS_LINE = /^(\S+)\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]{8}\s+\d{4})\s+(.*)$/s;

async function fromPs(pid: number): Promise<ProcessInfo | undefined> {
  const args = ['-ww', '-o', 'stat=', '-o', 'lstart=', '-o', 'command=', '-p', String(pid)];
  const output = await run('ps', args, { env: { ...process.env, LC_ALL: 'C' } }).catch((error: { code?: unknown }) => {
    if (error.code === 1) return undefined; // ps ends with 1 when no such process exists
    throw error;
  });
  const match = PS_LINE.exec(output?.stdout.trim() ?? '');
  if (!match?.[1] || !match[2] || match[1].startsWith('Z')) return undefined;
  return { pid, startedAt: match[2].replace(/\s+/g, ' '), command: match[3] ?? '' };
}
