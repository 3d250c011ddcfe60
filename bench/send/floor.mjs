/**
 * The lower bound for any design: an HTTP request, a one-statement transaction, one round trip to the agent, another one-statement
 * transaction, the answer. No authentication, no validation, no row-level security, no index but the primary keys.
 */
import { randomUUID } from 'node:crypto';
import fastify from 'fastify';
import pg from 'pg';
import { Pool } from 'undici';
import { serve } from '../harness/child-process.mjs';
import { dispatchOf, PARTS, taskAnswer } from '../harness/frames.mjs';
import { measured } from '../harness/measure.mjs';
import { agentSocket } from './agent-socket.mjs';

const TABLES = `
  CREATE TABLE messages (message_id text PRIMARY KEY, state text NOT NULL, parts jsonb NOT NULL, artifacts jsonb,
    created_at timestamptz NOT NULL DEFAULT now(), completed_at timestamptz);
  CREATE TABLE events (message_id text, seq integer, event_type text NOT NULL, payload jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (message_id, seq));`;
const ACCEPT = `
  WITH accepted AS (INSERT INTO messages (message_id, state, parts) VALUES ($1, 'working', $2))
  INSERT INTO events (message_id, seq, event_type, payload)
  SELECT $1, seq, event_type, $3
    FROM (VALUES (1, 'session.created'), (2, 'message.received'), (3, 'dispatch.sent')) AS event (seq, event_type)`;
const FINISH = `
  WITH finished AS (UPDATE messages SET state = 'completed', artifacts = $2, completed_at = now() WHERE message_id = $1)
  INSERT INTO events (message_id, seq, event_type, payload)
  SELECT $1, seq, event_type, $3
    FROM (VALUES (4, 'dispatch.success'), (5, 'message.completed')) AS event (seq, event_type)`;

const payload = (messageId) => JSON.stringify({ message_id: messageId, session_id: messageId, role: 'user' });

/** Handles one message, with `exchange` as the transport to the agent. Resolves with its artifacts. */
function messageHandler(database, exchange) {
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
function agentOverHttp(url) {
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
  const viaSocket = messageHandler(database, socket);
  const routes = { '/send': viaSocket, '/send-hosted': messageHandler(database, agentOverHttp(hostedUrl)) };
  const app = fastify();
  for (const [path, send] of Object.entries(routes)) {
    app.post(path, async (request) => {
      const { id, params } = request.body;
      const { messageId, parts } = params.message;
      return taskAnswer(id, messageId, await send(messageId, parts));
    });
  }
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  // The same work without the HTTP request, called in this process.
  return { ready: { url }, commands: measured(async () => void (await viaSocket(randomUUID(), PARTS))) };
});
