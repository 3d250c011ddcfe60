/** The sending side of one WebSocket over TLS to the echo agent. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { frame, frameId } from '../harness/frames.mjs';

/**
 * Opens the socket. Any number of dispatches may be in flight.
 * @param {{ url: string, ca: string }} agent
 * @returns {Promise<(dispatch: object) => Promise<object>>} sends a dispatch, resolves with the agent's message
 */
export async function agentSocket({ url, ca }) {
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
