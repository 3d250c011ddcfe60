/** The agents of a campaign or a soak: some that stay, some that leave and come back, and processes of them that are killed. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MORTAL } from '../harness/cluster/losses.mjs';
import { between, randomOf } from '../harness/cluster/pace.mjs';
import { Journal } from './judge/journal.mjs';

/** Agents with such ids leave and come back. */
export const LEAVING = 'leaving-';
/** Range of the time that an agent or a process is away. */
const AWAY_MS = [500, 4_000];
const TYPESCRIPT = ['campaign/agents.mjs'];

/** The agents on one SDK that live and die together. */
class Group {
  #harness;
  #program;
  #instances;

  constructor(harness, name, program, instances) {
    this.name = name;
    this.journal = join(harness.folder, `${name}.journal`);
    this.#harness = harness;
    this.#program = program;
    this.#instances = instances;
  }

  get isMortal() {
    return this.#instances.every(({ instanceId }) => instanceId.startsWith(MORTAL));
  }

  get leaving() {
    return this.#instances.filter(({ instanceId }) => instanceId.startsWith(LEAVING));
  }

  async start() {
    const [file, interpreter] = this.#program;
    this.child = await this.#harness.child(file, { journalFile: this.journal }, interpreter);
    await this.child.ask('join', this.#instances);
  }
}

export class Fleet {
  /** When a process of mortal agents was killed, in milliseconds since 1970. */
  kills = [];
  /** Agents that left, when they left and when they were back. */
  leaves = [];
  #cluster;
  #groups;
  #away = new Map();

  /**
   * @param {{ access: object, node: number, tenant: string, type: string, instanceId: string, sdk?: 'python' }[]} instances
   * @param {string} [python] that runs the agents on the Python SDK
   */
  static async start(harness, cluster, instances, python) {
    const programs = { TypeScript: TYPESCRIPT, Python: ['campaign/python_agents.py', [python]] };
    const groups = ['steady', 'mortal'].flatMap((kind) =>
      Object.entries(programs).map(([sdk, program]) => {
        const these = instances.filter(
          (each) =>
            (each.sdk === 'python') === (sdk === 'Python') &&
            each.instanceId.startsWith(MORTAL) === (kind === 'mortal'),
        );
        return these.length > 0 && new Group(harness, `${kind} ${sdk} agents`, program, these);
      }),
    );
    const fleet = new Fleet(cluster, groups.filter(Boolean));
    await Promise.all(fleet.#groups.map((group) => group.start()));
    return fleet;
  }

  constructor(cluster, groups) {
    this.#cluster = cluster;
    this.#groups = groups;
  }

  /** The processes that run throughout, by their names. */
  get steadyPids() {
    return Object.fromEntries(this.#groups.flatMap((each) => (each.isMortal ? [] : [[each.name, each.child.pid]])));
  }

  /** All that the agents wrote down so far. They tell which nodes there are. */
  readJournal() {
    const journal = Journal.read(this.#groups.map((group) => group.journal).filter(existsSync));
    for (const { node, meshId } of journal.connections.sort((a, b) => a.atMs - b.atMs))
      this.#cluster.nodes[node].connected(meshId);
    return journal;
  }

  /** Kills a process of mortal agents, and starts it again a moment later. */
  async killMortals() {
    const group = randomOf(this.#groups.filter(({ isMortal }) => isMortal));
    this.kills.push(Date.now());
    await group.child.kill();
    await delay(between(AWAY_MS));
    await group.start();
  }

  /** One agent finishes its work, leaves, and comes back a moment later. */
  async leaveAndReturn() {
    const group = randomOf(this.#groups.filter(({ leaving }) => leaving.length > 0));
    const { tenant, instanceId } = randomOf(group.leaving);
    const key = `${tenant}/${instanceId}`;
    if (this.#away.has(key)) return;
    const fromMs = Date.now();
    const away = group.child.ask('leaveAndReturn', { key, awayMs: between(AWAY_MS) });
    this.#away.set(key, away);
    await away;
    this.#away.delete(key);
    this.leaves.push({ instanceId, fromMs, toMs: Date.now() });
  }

  /** Resolves when all agents that left are back. */
  async settled() {
    await Promise.all(this.#away.values());
  }
}
