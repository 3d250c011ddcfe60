/** The agents of a soak: processes on both SDKs that run throughout, and one on each that is killed and started again. */
import { setTimeout as delay } from 'node:timers/promises';
import { MORTAL } from '../harness/cluster/losses.mjs';
import { between, randomOf } from '../harness/cluster/pace.mjs';

/** Every fourth agent is in a process that is killed. */
const MORTAL_EACH = 4;
/** Range of the time that an agent or a process is away. */
const AWAY_MS = [500, 4_000];

const TYPESCRIPT = 'typescript';
const PYTHON = 'python';

/** The SDK of the agent with this id. */
export const sdkOf = (instanceId) => [TYPESCRIPT, PYTHON].find((sdk) => instanceId?.includes(sdk));

export class SoakFleet {
  /** Which agents left, and when (milliseconds since 1970) they left and were back; when a process of agents was killed. */
  leaves = [];
  kills = [];
  /** How often each message and tool call was started, by its id. */
  started = new Map();
  connections = { resumed: 0, fresh: 0 };
  #harness;
  #cluster;
  #python;
  #steady = [];
  #mortal = [];
  #away = new Set();

  /** @param {{ agents: number, python: number, types: number }} options @param {string} [python] with the package, if any agent needs it */
  static async start(harness, cluster, { agents, python: pythonCount, types }, python) {
    const fleet = new SoakFleet(harness, cluster, python);
    const instances = Array.from({ length: agents }, (_, index) => {
      const sdk = index < pythonCount ? PYTHON : TYPESCRIPT;
      const instanceId = `${index % MORTAL_EACH === 0 ? MORTAL : 'steady-'}${sdk}-${index}`;
      return { node: index % cluster.nodes.length, type: `soak-${index % types}`, instanceId };
    });
    const groups = [TYPESCRIPT, PYTHON].flatMap((sdk) =>
      [false, true].map((isMortal) => ({
        sdk,
        isMortal,
        instances: instances.filter(({ instanceId: id }) => sdkOf(id) === sdk && id.startsWith(MORTAL) === isMortal),
      })),
    );
    await Promise.all(groups.filter((group) => group.instances.length > 0).map((group) => fleet.#add(group)));
    return fleet;
  }

  constructor(harness, cluster, python) {
    this.#harness = harness;
    this.#cluster = cluster;
    this.#python = python;
  }

  /** The processes that run throughout, by their SDKs. */
  get steadyPids() {
    return Object.fromEntries(this.#steady.map(({ sdk, child }) => [`the ${sdk} agents`, child.pid]));
  }

  /** Kills a process of agents, and starts it again a moment later. Nothing is done while one is away. */
  async killOne() {
    const group = randomOf(this.#mortal);
    if (!group?.child) return;
    await this.#read(group.child); // what follows until the kill is lost, a few milliseconds
    const { child } = group;
    group.child = undefined;
    this.kills.push(Date.now());
    await child.kill();
    await delay(between(AWAY_MS));
    await this.#launch(group);
  }

  /** An agent finishes its work, leaves, and comes back; resolves at once. */
  leaveOne() {
    const { child } = randomOf(this.#steady);
    const fromMs = Date.now();
    const options = { chosen: Math.random(), awayMs: between(AWAY_MS) };
    const away = child
      .ask('leaveAndReturn', options)
      .then((instanceId) => this.leaves.push({ instanceId, fromMs, toMs: Date.now() }));
    this.#away.add(away);
    void away.finally(() => this.#away.delete(away)).catch(() => undefined); // `settled` has the failure
  }

  /** Resolves when all agents that left are back. */
  async settled() {
    await Promise.all(this.#away);
  }

  /** Reads the journals of all processes. */
  async readJournals() {
    for (const group of [...this.#steady, ...this.#mortal]) {
      const { child } = group;
      if (!child) continue;
      await this.#read(child).catch((error) => {
        if (group.child === child) throw error; // else it was killed, and read before
      });
    }
  }

  async #add(group) {
    await this.#launch(group);
    (group.isMortal ? this.#mortal : this.#steady).push(group);
  }

  async #launch(group) {
    const [file, interpreter] =
      group.sdk === PYTHON ? ['soak/python_agents.py', [this.#python]] : ['soak/agents.mjs', undefined];
    const child = await this.#harness.child(file, { access: this.#cluster.accessOptions }, interpreter);
    await child.ask('join', group.instances);
    group.child = child;
  }

  async #read(child) {
    const { started, connected } = await child.ask('journal');
    for (const id of started) this.started.set(id, (this.started.get(id) ?? 0) + 1);
    for (const { node, meshId, resumed } of connected) {
      this.#cluster.nodes[node].connected(meshId);
      this.connections[resumed ? 'resumed' : 'fresh'] += 1;
    }
  }
}
