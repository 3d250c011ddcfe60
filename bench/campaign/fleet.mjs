/** The agents of a campaign: steady ones, some that leave and come back, and a process of them that is killed. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MORTAL } from '../harness/cluster/losses.mjs';
import { between, randomOf } from '../harness/cluster/pace.mjs';

/** Range of the time that an agent is away. */
const AWAY_MS = [500, 4_000];

export class CampaignFleet {
  /** When the mortal agents were killed, in milliseconds since 1970. */
  kills = [];
  left = 0;
  #harness;
  #steady;
  #mortal;
  #mortals;
  #leaving;
  #away = new Set();

  /** @param tenants of the campaign; each has agents on every node */
  static async start(harness, tenants) {
    const fleet = new CampaignFleet(harness);
    const instances = tenants.flatMap((tenant) => instancesOf(tenant));
    fleet.#mortals = instances.filter(({ instanceId }) => instanceId.startsWith(MORTAL));
    fleet.#leaving = instances.filter(({ instanceId }) => instanceId.startsWith('leaving-'));
    fleet.#steady = await harness.child('campaign/agents.mjs', { journalFile: fleet.journals[0] });
    await fleet.#steady.ask(
      'join',
      instances.filter((instance) => !fleet.#mortals.includes(instance)),
    );
    await fleet.#startMortals();
    return fleet;
  }

  constructor(harness) {
    this.#harness = harness;
  }

  get journals() {
    return ['steady', 'mortal'].map((name) => join(this.#harness.folder, `${name}.journal`));
  }

  get pid() {
    return this.#steady.pid;
  }

  async #startMortals() {
    this.#mortal = await this.#harness.child('campaign/agents.mjs', { journalFile: this.journals[1] });
    await this.#mortal.ask('join', this.#mortals);
  }

  /** Kills the process of the mortal agents, and starts it again a moment later. */
  async killMortals() {
    this.kills.push(Date.now());
    await this.#mortal.kill();
    await delay(between(AWAY_MS));
    await this.#startMortals();
  }

  /** One agent finishes its work, leaves, and comes back a moment later. */
  async leaveAndReturn() {
    const { tenant, instanceId } = randomOf(this.#leaving);
    const key = `${tenant}/${instanceId}`;
    if (this.#away.has(key)) return;
    this.#away.add(key);
    await this.#steady.ask('leaveAndReturn', { key, awayMs: between(AWAY_MS) });
    this.#away.delete(key);
    this.left += 1;
  }
}

/** On each node a steady agent, one that leaves, a mortal one and one with the tools; a hosted one. */
function instancesOf({ id: tenant, access }) {
  const on = (node, type, name) => ({ access: access[node], node, tenant, type, instanceId: `${name}-${node}` });
  return [
    ...[...access.keys()].flatMap((node) => [
      on(node, 'worker', 'steady'),
      on(node, 'worker', 'leaving'),
      on(node, 'worker', 'mortal'),
      on(node, 'tools', 'tools'),
    ]),
    on(0, 'hosted', 'hosted'),
  ];
}
