import { describe, expect, test } from 'vitest';
import type { FleetClient } from '../../../sdk/index.js';
import { textOf } from '../../../sdk/index.js';
import { until } from '../../setup/until.js';

/** An agent on an official SDK: it answers `ask` with a question, works on `slow` until it is canceled, and says everything else back. */
export interface OfficialServer {
  url: string;
  /** How many tasks were canceled at it. */
  canceled(): number;
}

/** The text of an answer in pieces: without streams each is a part of its own, and parts are joined by line feeds. */
const whole = (text: string | null | undefined): string => (text ?? '').replaceAll('\n', '');

/**
 * What an official server does in the fleet as it is, registered by its URL.
 * @param start it, with or without streams
 */
export function describeServer(
  name: string,
  client: FleetClient,
  start: (streaming: boolean) => Promise<OfficialServer>,
): void {
  describe.each([
    ['without streams', false],
    ['with streams', true],
  ])(`${name} %s`, (_, streaming) => {
    /** A server of the test's own, as an agent type of its own. */
    async function registered() {
      const server = await start(streaming);
      const agentType = `travel-${crypto.randomUUID()}`;
      await client.post('/agents/register', { agent_type: agentType, public_url: server.url });
      return { server, agentType };
    }

    test('answers a message, whole or in pieces', async () => {
      const { agentType } = await registered();
      const pieces: string[] = [];
      for await (const event of client.stream('hello', { agentType })) {
        if (event.kind === 'artifact-update') pieces.push(textOf(event.artifact.parts));
      }
      expect(whole(pieces.join(''))).toBe('you said hello');
      if (streaming) expect(pieces.length).toBeGreaterThan(1);
    });

    test('asks, and goes on with its task when a person has answered', async () => {
      const { agentType } = await registered();
      const asked = await client.send('ask', { agentType });
      expect(asked.status.state).toBe('input-required');
      expect(textOf(asked.status.message ?? [])).toBe('Where to?');
      await client.messages.resolve(asked.id, { resolution: 'submitted', data: { text: 'Rome' } });
      const { state, assistantOutput } = await client.messages.waitFor(asked.id);
      expect([state, whole(assistantOutput)]).toEqual(['completed', 'to Rome']);
    });

    if (!streaming) return; // the platform does not know the task before the answer: it drops the request
    test('is told when its task is canceled', async () => {
      const { server, agentType } = await registered();
      const states: string[] = [];
      for await (const event of client.stream('slow', { agentType })) {
        if (event.kind !== 'status-update') continue;
        states.push(event.status.state);
        const text = textOf(event.status.message?.parts ?? []);
        if (text === 'on the way') await client.messages.cancel({ messageId: event.taskId });
      }
      expect(states.at(-1)).toBe('canceled');
      await until(() => server.canceled() === 1);
    });
  });
}
