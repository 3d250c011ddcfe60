import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { serveApi } from '../../api/served-api.js';
import { cleanUp } from '../../setup/clean-up.js';
import { EventFollower } from '../../telemetry/event-follower.js';
import { positionAll, writeEvent } from '../../telemetry/event-writer.js';

const api = await serveApi({ sequencer: true });
const token = await api.tokenOf(['read']);

/** A reader that asks for a stream and then reads nothing until it is told to. */
async function stalledReader() {
  const socket = connect({ port: api.port, host: '127.0.0.1' });
  cleanUp(() => socket.destroy());
  await once(socket, 'connect');
  socket.write(
    `POST /telemetry/stream_events HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\nContent-Length: 0\r\n\r\n`,
  );
  const [head] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  return {
    readAll: async (): Promise<string> => {
      let text = head.toString();
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.resume();
      await once(socket, 'end');
      return text;
    },
  };
}

const STARTED_AT_S = Date.now() / 1_000;
let written = 0;

/** Events whose ids follow each other, a millisecond apart. */
async function flood(count: number): Promise<string[]> {
  const name = 'x'.repeat(20_000);
  const before = written;
  written += count;
  const rows = await api.database.query<{ event_id: string }>(
    `INSERT INTO event_groups (tenant_id, types, group_id, events)
     SELECT uuid_of($1), event_bit('tenant.created'), id_bound(NULL, to_timestamp($3) + n * interval '1 ms')::uuid,
            jsonb_build_array(jsonb_build_object('tenant_id', 'x', 'name', $2::text))
       FROM generate_series($4::integer + 1, $4 + ${count}) n RETURNING event_id(group_id, 0) AS event_id`,
    [api.tenantId, name, STARTED_AT_S, before],
  );
  return rows.map(({ event_id }) => event_id);
}

test('a reader that is too slow is told where to continue, and others are not kept waiting', async () => {
  const slow = await stalledReader();
  const quick = await EventFollower.open(api.baseUrl, token);
  const ids: string[] = [];
  for (let round = 0; round < 12; round += 1) {
    ids.push(...(await flood(100)));
    await quick.has(ids.length);
  }
  const text = await slow.readAll();
  const events = [...text.matchAll(/^id: (\S+)$/gm)].map(([, id]) => id);
  expect(events).toEqual(ids.slice(0, events.length));
  expect(events.length).toBeLessThan(ids.length);
  const closed = JSON.parse(/event: stream\.closed\s+data: (.*)/.exec(text)?.[1] ?? '{}');
  expect(closed).toMatchObject({ code: 'BACKPRESSURE', last_event_id: events.at(-1) });
  await positionAll(api.db);
  const rest = await EventFollower.open(api.baseUrl, token, { body: { last_event_id: closed.last_event_id } });
  await rest.has(ids.length - events.length);
  const next = await writeEvent(api.database, api.tenantId);
  await rest.has(ids.length - events.length + 1);
  expect(rest.ids).toEqual([...ids.slice(events.length), next]);
});
