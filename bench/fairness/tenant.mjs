/** The tenant that takes what it can get, in a process of its own: it floods, fills sessions and closes them. */
import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { serve } from '../harness/child-process.mjs';
import { PARTS } from '../harness/frames.mjs';

const CONNECTIONS = 64;
/** Callers that fill a session. */
const FILLING = 32;

const bodyOf = (agentType, { contextId, blocking = true }) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: {
      message: {
        kind: 'message',
        messageId: randomUUID(),
        role: 'user',
        parts: PARTS,
        ...(contextId && { contextId }),
      },
      metadata: { agent_type: agentType },
      configuration: { blocking },
    },
  });

serve(async ({ url, token }) => {
  const pool = new Pool(url, { connections: CONNECTIONS, headersTimeout: 0, bodyTimeout: 0 });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const post = async (path, body) => {
    const { statusCode, body: answer } = await pool.request({ path, method: 'POST', headers, body });
    return { statusCode, text: await answer.text() };
  };

  /** Calls from `width` callers until `isOver`. @returns how many calls got each HTTP status */
  const callers = async (width, isOver, body) => {
    const statuses = {};
    const caller = async () => {
      while (!isOver()) {
        const { statusCode } = await post('/send', body());
        statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: width }, caller));
    return statuses;
  };

  let flood;
  return {
    commands: {
      /** Floods with messages to a type of agent until `calm`, which gives the number of calls by status. */
      flood: ({ agentType, width }) => {
        const state = { over: false };
        const done = callers(
          width,
          () => state.over,
          () => bodyOf(agentType, {}),
        );
        done.catch(() => undefined); // `calm` reports it
        flood = { state, done };
      },
      calm: () => {
        flood.state.over = true;
        return flood.done;
      },
      /** Sends so many messages into a session without waiting for their ends. */
      fill: ({ agentType, contextId, count }) => {
        let left = count;
        return callers(
          FILLING,
          () => left-- <= 0,
          () => bodyOf(agentType, { contextId, blocking: false }),
        );
      },
      /** Closes a session. @returns milliseconds */
      close: async ({ session_id }) => {
        const from = performance.now();
        const { statusCode, text } = await post('/sessions/close', JSON.stringify({ session_id }));
        if (statusCode !== 200) throw new Error(`/sessions/close answered ${statusCode}: ${text}`);
        return performance.now() - from;
      },
    },
  };
});
