/**
 * What no design can do without, and nothing else: an HTTP request, a transaction in one statement, one round trip to the agent, a
 * transaction in one statement, the answer. No authentication, no validation, no row-level security, no index but the primary keys.
 */
import { randomUUID } from 'node:crypto';
import fastify from 'fastify';
import pg from 'pg';
import { Pool } from 'undici';
import { agentSocket } from './agent-socket.mjs';
import { serve } from './channel.mjs';
import { dispatchOf, PARTS, taskAnswer } from './frames.mjs';
import { measured } from './measure.mjs';

const TABLES = `
  CREATE TABLE messages (message_id text PRIMARY KEY, state text NOT NULL, parts jsonb NOT NULL, artifacts jsonb,
    created_at timestamptz NOT NULL DEFAULT now(), completed_at timestamptz);
  CREATE TABLE events (message_id text, seq integer, event_type text NOT NULL, payload jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (message_id, seq));`;
const ACCEPT = `
  WITH accepted AS (INSERT INTO messages (message_id, state, parts) VALUES ($1, 'working', $2))
  INSERT INTO events (message_id, seq, event_type, payload)
  SELECT $1, seq, event_type, $3
    FROM (VALUES (1, 'session.created'), (2, 'message.received'), (3, 'dispatch.sent')) AS told (seq, event_type)`;
const FINISH = `
  WITH finished AS (UPDATE messages SET state = 'completed', artifacts = $2, completed_at = now() WHERE message_id = $1)
  INSERT INTO events (message_id, seq, event_type, payload)
  SELECT $1, seq, event_type, $3
    FROM (VALUES (4, 'dispatch.success'), (5, 'message.completed')) AS told (seq, event_type)`;

const payload = (messageId) => JSON.stringify({ message_id: messageId, session_id: messageId, role: 'user' });

/** One message, by one way to the agent. Resolves with its artifacts. */
function messageBy(database, exchange) {
  return async (messageId, parts) => {
    const event = payload(messageId);
    await database.query({ name: 'accept', text: ACCEPT, values: [messageId, JSON.stringify(parts), event] });
    const result = await exchange(dispatchOf(messageId, parts));
    const artifacts = [{ artifactId: result.messageId, parts: result.parts }];
    await database.query({ name: 'finish', text: FINISH, values: [messageId, JSON.stringify(artifacts), event] });
    return artifacts;
  };
}

/** @returns {(dispatch: object) => Promise<object>} the agent's message */
function byHttp(url) {
  const agent = new Pool(url);
  const headers = { 'content-type': 'application/json' };
  return async (dispatch) => {
    const { body } = await agent.request({ path: '/', method: 'POST', headers, body: JSON.stringify(dispatch) });
    return (await body.json()).result;
  };
}

/** @param {{ databaseUrl: string, poolMax: number, connected: { url: string, ca: string }, hostedUrl: string }} options */
serve(async ({ databaseUrl, poolMax, connected, hostedUrl }) => {
  const database = new pg.Pool({ connectionString: databaseUrl, max: poolMax });
  await database.query(TABLES);
  const socket = await agentSocket(connected);
  const viaSocket = messageBy(database, socket);
  const ways = { '/send': viaSocket, '/send-hosted': messageBy(database, byHttp(hostedUrl)) };
  const app = fastify();
  for (const [path, send] of Object.entries(ways)) {
    app.post(path, async (request) => {
      const { id, params } = request.body;
      const { messageId, parts } = params.message;
      return taskAnswer(id, messageId, await send(messageId, parts));
    });
  }
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  // The same without the HTTP hop: called from within.
  return { ready: { url }, commands: measured(async () => void (await viaSocket(randomUUID(), PARTS))) };
});
