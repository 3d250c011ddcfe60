import { expect } from 'vitest';
import { Task } from '../../contracts/a2a/a2a.js';
import { HTTP_ERRORS } from '../../contracts/errors.js';
import { ErrorBody } from '../../contracts/primitives.js';
import { leftovers, type RecordReader } from '../setup/histories/record-checker.js';
import type { ApiClient } from '../setup/platform/api-client.js';
import type { JournalingAgent } from '../setup/platform/fleet.js';
import { until } from '../setup/until.js';
import { to } from './fixture.js';

const SENDERS = 64;
/** What a caller is told to repeat while servers are away, or come back with a full queue: docs/errors.md. */
const TO_REPEAT = ['SERVICE_UNAVAILABLE', 'RATE_LIMITED'] as const;
const NOT_ENDED = "SELECT 1 FROM messages WHERE state NOT IN ('completed', 'failed', 'canceled')";

export const idsOf = (round: string, count: number) => Array.from({ length: count }, (_, index) => `${round}-${index}`);

/** Callers of agents of the type `worker` that repeat what is not acknowledged, under its messageId. */
export class Callers {
  /** The tasks by the messageIds. A repeat must give the same one. */
  readonly acknowledged = new Map<string, string>();
  readonly #client: ApiClient;

  constructor(client: ApiClient) {
    this.#client = client;
  }

  /** Sends these again and again, some at a time, until it is enough: each is acknowledged, where nothing else is said. */
  async send(messageIds: string[], enough = () => messageIds.every((id) => this.acknowledged.has(id))): Promise<void> {
    do {
      const unsent = messageIds.filter((id) => !this.acknowledged.has(id));
      await this.#sendEach(unsent, enough);
    } while (!enough());
  }

  /** Sends each once, also those that are acknowledged. */
  repeat(messageIds: string[]): Promise<void> {
    return this.#sendEach(messageIds, () => false);
  }

  async #sendEach(messageIds: string[], enough: () => boolean): Promise<void> {
    const queue = [...messageIds];
    const sender = async () => {
      for (let id = queue.shift(); id !== undefined && !enough(); id = queue.shift()) await this.#sendOnce(id);
    };
    await Promise.all(Array.from({ length: SENDERS }, sender));
  }

  /** An answer other than a task must be one to repeat; no answer at all is what a killed server gives. */
  async #sendOnce(messageId: string): Promise<void> {
    const signal = AbortSignal.timeout(20_000);
    const options = { ...to('worker'), messageId, blocking: false, signal };
    const answer = await this.#client.rpc(`text of ${messageId}`, options).catch((error: Error) => {
      expect(['TypeError', 'TimeoutError', 'AbortError']).toContain(error.name);
      return undefined;
    });
    if (answer?.status === 200 && answer.result !== undefined) {
      const { id } = Task.parse(answer.result);
      expect(this.acknowledged.get(messageId) ?? id).toBe(id);
      this.acknowledged.set(messageId, id);
    } else if (answer) {
      const { code } = ErrorBody.parse(answer.body);
      expect(TO_REPEAT.map((known) => [HTTP_ERRORS[known], known])).toContainEqual([answer.status, code]);
    }
  }
}

export const notEnded = async (reader: RecordReader) => (await reader.query(NOT_ENDED)).length;

/**
 * Every message that was acknowledged is on the record once and has ended, and the record does not contradict itself; agents were given
 * nothing that it does not call sent, and no message in two dispatches.
 */
export async function expectEndedOnce(
  reader: RecordReader,
  { acknowledged }: Callers,
  agents: JournalingAgent[],
): Promise<void> {
  const allEnded = async () => {
    const open = await notEnded(reader);
    return open === 0 || Promise.reject(new Error(`${open} messages have not ended`));
  };
  await until(allEnded, { timeoutMs: 150_000, what: 'the end of every message' });
  await until(async () => (await leftovers(reader)).length === 0).catch(() => undefined);
  expect(await leftovers(reader)).toEqual([]);
  const rows = await reader.query<{ client_message_id: string; message_id: string }>(
    'SELECT client_message_id, message_id FROM messages',
  );
  const recorded = new Map(rows.map((row) => [row.client_message_id, row.message_id]));
  expect(recorded.size).toBe(rows.length);
  expect([...acknowledged].filter(([messageId, taskId]) => recorded.get(messageId) !== taskId)).toEqual([]);

  const journal = agents.flatMap((agent) => agent.journal);
  const sent = await reader.query<{ dispatch_id: string }>(
    'SELECT dispatch_id FROM dispatches WHERE sent_at IS NOT NULL',
  );
  const known = new Set(sent.map(({ dispatch_id }) => dispatch_id));
  expect(journal.filter(({ dispatch_id }) => !known.has(dispatch_id))).toEqual([]);
  const first = new Map([...journal].reverse().map((entry) => [entry.message_id, entry.dispatch_id]));
  expect(journal.filter((entry) => first.get(entry.message_id) !== entry.dispatch_id)).toEqual([]);
}
