/** CPU time and memory of processes, read from /proc. Only Linux has it; other systems get no such figures. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds of one clock tick of /proc: `USER_HZ` is 100 on every Linux. */
const TICK_MS = 10;
const WINDOW_MS = 300;
const SETTLE_MAX_MS = 15_000;
/** A process counts as idle again when it uses less than this share of a core above its measured idle use. */
const QUIET_SHARE = 0.1;

/** Whether this system has /proc. */
export const hasProc = existsSync('/proc/self/stat');

/** CPU time of a process, and of its children that have exited. */
function cpuMs(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system, waitedUser, waitedSystem] = fields.slice(11, 15).map(Number);
  return { own: (user + system) * TICK_MS, waited: (waitedUser + waitedSystem) * TICK_MS };
}

const ownMs = (pid) => cpuMs(pid).own;

/** CPU time of a server and its forked processes, exited ones included. */
function treeMs(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  const { own, waited } = cpuMs(pid);
  return own + waited + children.reduce((sum, child) => sum + childMs(child), 0);
}

function childMs(pid) {
  try {
    return ownMs(pid);
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return 0;
    throw error;
  }
}

/**
 * Resident memory of a process.
 * @param {number} pid
 * @returns {number} MiB
 */
export function residentMiB(pid) {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kib) / 1_024;
}

/** The server that forks a process for each connection, so its children are counted with it. */
const FORKING = 'postgres';

/** Reads the CPU time of named processes, and waits until they are idle. */
export class CpuMeter {
  #pids;
  #idle = {};

  /** @param {Record<string, number>} pids by name; `postgres` is read with its children */
  constructor(pids) {
    this.#pids = pids;
  }

  /** @returns {Record<string, number>} milliseconds so far, by name; empty without /proc */
  read() {
    if (!hasProc) return {};
    const entries = Object.entries(this.#pids);
    return Object.fromEntries(entries.map(([name, pid]) => [name, name === FORKING ? treeMs(pid) : ownMs(pid)]));
  }

  /** Measures the CPU use of the idle processes. */
  async measureIdle(ms) {
    this.#idle = await this.#shares(ms);
  }

  /** Waits until the processes are idle, so that deferred work of one row is not counted in the next. */
  async settle() {
    const until = performance.now() + SETTLE_MAX_MS;
    while (performance.now() < until) {
      const shares = await this.#shares(WINDOW_MS);
      if (Object.entries(shares).every(([name, share]) => share < (this.#idle[name] ?? 0) + QUIET_SHARE)) return;
    }
  }

  /** Postgres counts without its children here: they are busy only while another measured process is. */
  async #shares(ms) {
    if (!hasProc) return {};
    const names = Object.keys(this.#pids);
    const ownTimes = () => names.map((name) => ownMs(this.#pids[name]));
    const before = ownTimes();
    await delay(ms);
    const after = ownTimes();
    return Object.fromEntries(names.map((name, index) => [name, (after[index] - before[index]) / ms]));
  }
}
