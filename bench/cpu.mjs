/** CPU time and memory of processes, from /proc: Linux only, elsewhere there are no such figures. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds of one clock tick of /proc: `USER_HZ` is 100 on every Linux. */
const TICK_MS = 10;
const WINDOW_MS = 300;
const SETTLE_MAX_MS = 15_000;
/** Share of one core above its idle use below which a process counts as quiet again. */
const QUIET_SHARE = 0.1;

/** Whether this system tells. */
export const hasProc = existsSync('/proc/self/stat');

/** The CPU time that a process has used itself, and that of the children it has waited for. */
function cpuMs(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system, waitedUser, waitedSystem] = fields.slice(11, 15).map(Number);
  return { own: (user + system) * TICK_MS, waited: (waitedUser + waitedSystem) * TICK_MS };
}

const ownMs = (pid) => cpuMs(pid).own;

/** A server and the processes it has forked; those that have ended are in the time that it has waited for. */
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

/** Serves each connection in a process of its own. Other processes start servers that have names of their own here. */
const FORKING = 'postgres';

/** Reads the CPU time of named processes, and waits until they have come to rest. */
export class CpuMeter {
  #pids;
  #idle = {};

  /** @param {Record<string, number>} pids by name; `postgres` is read with its children */
  constructor(pids) {
    this.#pids = pids;
  }

  /** @returns {Record<string, number>} milliseconds so far, by name; empty where the system does not tell */
  read() {
    if (!hasProc) return {};
    const entries = Object.entries(this.#pids);
    return Object.fromEntries(entries.map(([name, pid]) => [name, name === FORKING ? treeMs(pid) : ownMs(pid)]));
  }

  /** Learns what the processes use when nobody asks anything of them. */
  async learnIdle(ms) {
    this.#idle = await this.#shares(ms);
  }

  /** Waits until they use no more than when idle, so that what one row left to be done is not done in the next. */
  async settle() {
    const until = performance.now() + SETTLE_MAX_MS;
    while (performance.now() < until) {
      const shares = await this.#shares(WINDOW_MS);
      if (Object.entries(shares).every(([name, share]) => share < (this.#idle[name] ?? 0) + QUIET_SHARE)) return;
    }
  }

  /** Postgres without its children: it works because one of the others asks it to, and that one is seen. */
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
