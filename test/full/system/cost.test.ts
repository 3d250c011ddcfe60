import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Task } from '../../../contracts/a2a/a2a.js';
import { SessionInitResponse } from '../../../contracts/api/sessions.js';
import { messageWorkflowId } from '../../../workflows/definitions.js';
import { policyFor } from '../../policies/policy-fixture.js';
import { echo } from '../../setup/agent.js';
import type { SendOptions } from '../../setup/platform/api-client.js';
import { CountedPostgres, type Statement } from '../../setup/platform/counted-postgres.js';
import { CountedTemporal } from '../../setup/platform/counted-temporal.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { FAST_PATH, type MessagePath, WORKFLOW_PATH } from '../../setup/platform/paths.js';
import { type SharedPlatform, startPlatform } from '../../setup/platform/platform.js';
import { until } from '../../setup/until.js';

/** What one `/send` to a connected agent that answers at once costs. */
interface Cost extends MessagePath {
  /** Round trips on tenants' connections to Postgres, at most: a caller looks at the message once more or less often as it moves. */
  roundTrips: number;
  /** The same for a stream that is read to its end. */
  streamRoundTrips: number;
  /** Calls to Temporal that name the message, by its callers and its workers. */
  temporalCalls: string[];
  /** What is sent. The workflows of sessions that sends open would come between the counts of the workflow path. */
  kinds: ('in a session' | 'that opens a session' | 'that names no target')[];
}

const COSTS: Cost[] = [
  {
    ...FAST_PATH,
    roundTrips: 2,
    streamRoundTrips: 2,
    temporalCalls: [],
    kinds: ['in a session', 'that opens a session', 'that names no target'],
  },
  {
    ...WORKFLOW_PATH,
    roundTrips: 18,
    streamRoundTrips: 20,
    temporalCalls: [
      'StartWorkflowExecution',
      'RespondWorkflowTaskCompleted',
      'RespondActivityTaskCompleted',
      'RespondWorkflowTaskCompleted',
    ],
    kinds: ['in a session'],
  },
];
/** So many that one statement in some of them would show. */
const SENDS = 10;

let postgres: CountedPostgres;
let temporal: CountedTemporal;
let shared: SharedPlatform;

/** Sends one after the other; a message's workflow, where it has one, has ended when the next is sent. */
async function sendAll(way: MessagePath, options: SendOptions): Promise<Task[]> {
  const tasks: Task[] = [];
  for (let sent = 0; sent < SENDS; sent += 1) {
    const task = await shared.platform.client.send(`hello ${sent}`, options);
    tasks.push(task);
    if (way.env.FLEET_FAST_PATH === 'off') await workflowEnds(task.id);
  }
  return tasks;
}

async function workflowEnds(messageId: string): Promise<void> {
  const { tenant_id } = shared.platform.devJson();
  await shared.temporal.workflow.getHandle(messageWorkflowId({ tenant_id, message_id: messageId })).result();
}

/** How often each statement ran, one line for each. */
function tally(statements: Statement[]): string {
  const counts = new Map<string, number>();
  for (const { sql } of statements) {
    const line = sql.trim().replaceAll(/\s+/g, ' ').slice(0, 100);
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].map(([line, count]) => `${count} x ${line}`).join('\n');
}

/** At most so many for each send; two at least, or they were not seen: it is accepted and completed. */
function expectRoundTrips(statements: Statement[], most: number): void {
  expect(statements.length / SENDS, tally(statements)).toBeLessThanOrEqual(most);
  expect(statements.length / SENDS, tally(statements)).toBeGreaterThanOrEqual(2);
}

describe.each(COSTS)('$way, one send', ({ roundTrips, streamRoundTrips, temporalCalls, kinds, ...way }) => {
  let sessionId: string;
  beforeAll(async () => {
    temporal = await CountedTemporal.to(inject('temporalAddress'));
    const wayTo = async (url: string) => {
      postgres = await CountedPostgres.to(url);
      return postgres.url;
    };
    shared = await startPlatform({ ...way.env, TEMPORAL_ADDRESS: temporal.address }, { wayTo });
    const { client } = shared.platform;
    await joinAgent(shared.platform, { instanceId: 'echo-1', agentType: 'echo', maxConcurrentSessions: 0 }, echo);
    const { session_id } = await client.ok('/sessions/init', { instance_id: 'echo-1' }, SessionInitResponse);
    sessionId = session_id;
    await until(() => temporal.about(sessionId).includes('RespondWorkflowTaskCompleted'), {
      what: 'the start of the session workflow',
    });
    for (const kind of kinds) await sendAll(way, optionsFor(kind));
  });
  afterAll(async () => {
    await shared?.dispose();
    await postgres?.close();
    await temporal?.close();
  });

  const optionsFor = (kind: Cost['kinds'][number]): SendOptions => {
    if (kind === 'in a session') return { contextId: sessionId };
    return kind === 'that names no target' ? {} : { metadata: { agent_type: 'echo' } };
  };

  test.each(kinds)('of a message %s takes its round trips and Temporal calls, no more', async (kind) => {
    postgres.take();
    const tasks = await sendAll(way, optionsFor(kind));
    const statements = postgres.take().filter(({ application }) => application === 'fleet_app');
    expectRoundTrips(statements, roundTrips);
    // A workflow closes after its message has ended.
    const calls = () => tasks.map(({ id }) => temporal.about(id));
    await until(() => calls().every((made) => made.length >= temporalCalls.length), { what: 'the last call' });
    expect(calls()).toEqual(tasks.map(() => temporalCalls));
  });

  test('of a tenant with a hundred policies takes the same round trips', async () => {
    const { client } = shared.platform;
    for (let n = 0; n < 100; n += 1) {
      const match = { agent_types: [`type-${n}`], arguments: [{ path: 'metadata.a', op: 'eq' as const, value: n }] };
      await policyFor(client, { scope: n % 2 === 0 ? 'admission' : 'dispatch', decision: 'deny', match });
    }
    const options = optionsFor('in a session');
    await sendAll(way, options); // the first one reads them
    postgres.take();
    await sendAll(way, options);
    expectRoundTrips(
      postgres.take().filter(({ application }) => application === 'fleet_app'),
      roundTrips,
    );
  });

  test('of a stream takes its round trips, no more', async () => {
    const { client } = shared.platform;
    const all = async () => {
      const events = [];
      for await (const event of client.stream('hello', { contextId: sessionId })) events.push(event);
      return events;
    };
    postgres.take();
    for (let sent = 0; sent < SENDS; sent += 1) expect((await all()).at(-1)).toMatchObject({ final: true });
    const statements = postgres.take().filter(({ application }) => application === 'fleet_app');
    expectRoundTrips(statements, streamRoundTrips);
  });
});
