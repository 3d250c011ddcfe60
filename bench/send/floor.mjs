/**
 * The lower bound for any design: an HTTP request, a one-statement transaction, one round trip to the agent, another one-statement
 * transaction, the answer. No authentication, no validation, no row-level security, no index but the primary keys.
 */
import { once } from 'node:events';
import fastify from 'fastify';
import pg from 'pg';
import { WebSocket } from 'ws';
import { serve } from '../harness/child-process.mjs';
import { dispatchOf, frame, frameId, taskAnswer } from '../harness/frames.mjs';

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

/**
 * Opens a socket over TLS to the agent. Any number of dispatches may be in flight.
 * @returns {Promise<(dispatch: object) => Promise<object>>} sends a dispatch, resolves with the agent's message
 */
async function agentSocket({ url, ca }) {
  const socket = new WebSocket(url, { ca, perMessageDeflate: false });
  await once(socket, 'open');
  const pending = new Map();
  socket.on('message', (data) => {
    const { in_reply_to, payload } = JSON.parse(data);
    pending.get(in_reply_to).resolve(payload.result);
    pending.delete(in_reply_to);
  });
  socket.on('close', () => {
    for (const { reject } of pending.values()) reject(new Error('the socket to the echo agent was lost'));
  });
  return (dispatch) =>
    new Promise((resolve, reject) => {
      const id = frameId();
      pending.set(id, { resolve, reject });
      socket.send(frame('dispatch', dispatch, { id }));
    });
}

/** @param {{ databaseUrl: string, poolMax: number, agent: { url: string, ca: string } }} options */
serve(async ({ databaseUrl, poolMax, agent }) => {
  const database = new pg.Pool({ connectionString: databaseUrl, max: poolMax });
  await database.query(TABLES);
  const handle = messageHandler(database, await agentSocket(agent));
  const app = fastify();
  app.post('/send', async (request) => {
    const { id, params } = request.body;
    const { messageId, parts } = params.message;
    return taskAnswer(id, messageId, await handle(messageId, parts));
  });
  return { ready: { url: await app.listen({ port: 0, host: '127.0.0.1' }) } };
});
