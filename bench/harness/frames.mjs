/** Frames and request bodies of the benchmark's own processes: the shapes of the platform, built as cheaply as possible. */
import { randomUUID } from 'node:crypto';

const TEXT =
  'What was the mean response time of the billing service during the last hour, and is that more than usual?';
const VERSION_7 = /^(.{14})4/;

/** The parts of every message that is sent. */
const PARTS = [{ kind: 'text', text: TEXT }];

/** A UUID whose version digit is 7, as frames require; its order in time does not matter here. */
export function frameId() {
  return randomUUID().replace(VERSION_7, '$17');
}

/** A frame of `service.v1` as text. */
export function frame(type, payload, { id = frameId(), inReplyTo } = {}) {
  return JSON.stringify({ v: 1, type, id, ts: new Date().toISOString(), in_reply_to: inReplyTo, payload });
}

/** The echo agent's answer to these parts. */
export function echoOf(parts) {
  return { kind: 'message', messageId: randomUUID(), role: 'agent', parts };
}

/** A dispatch without the fields that only the platform knows. */
export function dispatchOf(messageId, parts) {
  const message = { kind: 'message', messageId, role: 'user', parts };
  return { jsonrpc: '2.0', id: messageId, method: 'message/send', params: { message }, deadline_ms: 600_000 };
}

/** The JSON-RPC answer that holds the completed task. */
export function taskAnswer(id, messageId, artifacts) {
  const status = { state: 'completed', timestamp: new Date().toISOString() };
  return { jsonrpc: '2.0', id, result: { kind: 'task', id: messageId, contextId: messageId, status, artifacts } };
}

/**
 * Bodies of `/send` in which only the `messageId` changes.
 * @param {'message/send' | 'message/stream'} method
 * @param {string} agentType
 * @returns {() => string}
 */
export function bodies(method, agentType) {
  const message = { kind: 'message', messageId: '@', role: 'user', parts: PARTS };
  const params = { message, metadata: { agent_type: agentType } };
  const [head, tail] = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }).split('@');
  const run = randomUUID();
  let next = 0;
  return () => `${head}${run}-${next++}${tail}`;
}
