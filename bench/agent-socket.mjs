/** The caller's side of one WebSocket over TLS to the echo agent. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { frame, frameId } from './frames.mjs';

/**
 * Opens it; any number of dispatches may be under way.
 * @param {{ url: string, ca: string }} agent
 * @returns {Promise<(dispatch: object) => Promise<object>>} sends a dispatch, resolves with the agent's message
 */
export async function agentSocket({ url, ca }) {
  const socket = new WebSocket(url, { ca, perMessageDeflate: false });
  await once(socket, 'open');
  const waiting = new Map();
  socket.on('message', (data) => {
    const { in_reply_to, payload } = JSON.parse(data);
    waiting.get(in_reply_to).resolve(payload.result);
    waiting.delete(in_reply_to);
  });
  socket.on('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('the socket to the echo agent was lost'));
  });
  return (dispatch) =>
    new Promise((resolve, reject) => {
      const id = frameId();
      waiting.set(id, { resolve, reject });
      socket.send(frame('dispatch', dispatch, { id }));
    });
}
