import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Agent, isTransient, type Task } from '../../../../sdk/index.js';
import { fleetClient } from '../../../setup/fleet-client.js';
import { startPlatform } from '../../../setup/platform/platform.js';

const RESTARTS = 10;
const CALLERS = 32;
/** Answers that each agent gives before it is stopped: it is stopped under load, not between loads. */
const ANSWERS_BETWEEN = 150;
const WORK_MS = [0, 0, 0, 20, 150];
const { platform } = await startPlatform();
const { base_url: url, client_id: clientId, client_secret: clientSecret, ca_file } = platform.devJson();
const access = { url, clientId, clientSecret, ca: readFileSync(ca_file, 'utf8') };
const client = fleetClient(platform);

/** An agent of one name at one address, and how many messages it has answered in all its lives. */
class RestartedAgent {
  answers = 0;
  #agent: Agent | null = null;
  #port = 0;

  async start(): Promise<void> {
    const named = { type: 'baker', instanceId: 'baker-1' };
    this.#agent = new Agent({ ...access, ...named, maxConcurrentSessions: 0, drainOnSignals: false });
    this.#agent.onMessage(async (task) => {
      await delay(WORK_MS[this.answers % WORK_MS.length]);
      this.answers += 1;
      return `baked ${task.text}`;
    });
    this.#port = Number(new URL(await this.#agent.serve({ port: this.#port })).port);
  }

  async stop(graceSeconds?: number): Promise<void> {
    await this.#agent?.close(graceSeconds);
  }

  async answered(count: number): Promise<void> {
    const from = this.answers;
    while (this.answers - from < count) await delay(5);
  }
}

/** On a slow machine the platform refuses calls beyond what it has the time for. */
async function sendUntilAccepted(text: string): Promise<Task> {
  for (;;) {
    try {
      return await client.send(text, { agentType: 'baker', messageId: text });
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
  }
}

test('a hosted agent that is restarted again and again under load answers every message', async () => {
  const agent = new RestartedAgent();
  onTestFinished(() => agent.stop(0));
  await agent.start();
  const tasks: Task[] = [];
  let isOver = false;
  const caller = async (name: number) => {
    for (let number = 0; !isOver; number += 1) {
      tasks.push(await sendUntilAccepted(`${name}.${number}`));
    }
  };
  const callers = Promise.all(Array.from({ length: CALLERS }, (_, name) => caller(name)));
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    await Promise.race([agent.answered(ANSWERS_BETWEEN), callers]);
    await agent.stop();
    await agent.start();
  }
  isOver = true;
  await callers;
  const failed = tasks.filter(({ status }) => status.state !== 'completed');
  expect(failed.map(({ status, metadata }) => [status.state, metadata?.error])).toEqual([]);
  expect(tasks.length).toBeGreaterThan(RESTARTS * ANSWERS_BETWEEN);
}, 240_000);
