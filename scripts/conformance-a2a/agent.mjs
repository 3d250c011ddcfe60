/** The hosted agent for the conformance kits: it behaves as their scenarios expect from a system under test. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { behaviourFor } from './behaviours.mjs';

function card(url) {
  return {
    protocolVersion: '0.3.0',
    name: 'conformance',
    description: 'Behaves as a conformance test expects.',
    url,
    version: '1.0.0',
    capabilities: { streaming: true },
    defaultInputModes: ['*/*'], // the kit sends a file of an unusual media type
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'conformance', name: 'Conformance', description: 'Answers the tests of a kit.', tags: ['test'] }],
  };
}

/** Answers one dispatch with server-sent events of A2A 0.3, step by step. Stops when the platform disconnects. */
class Answer {
  #response;
  #id;
  #ids;

  constructor(response, { id, params: { message }, session_context }) {
    this.#response = response;
    this.#id = id;
    this.#ids = { taskId: message.taskId ?? `task-${session_context.message_id}`, contextId: message.contextId };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
  }

  async run(steps) {
    for (const step of steps) {
      if (this.#response.destroyed) return;
      if (step.waitMs) await delay(step.waitMs);
      else this.#send(this.#event(step));
    }
    this.#response.end();
  }

  #event({ state, message, artifact, append, lastChunk, reply }) {
    if (reply) return { kind: 'message', messageId: `reply-${this.#ids.taskId}`, role: 'agent', parts: reply };
    if (artifact) return { kind: 'artifact-update', ...this.#ids, artifact, append, lastChunk };
    const statusMessage = message && {
      message: { kind: 'message', messageId: `status-${this.#ids.taskId}`, role: 'agent', parts: message },
    };
    const final = state !== 'working';
    return { kind: 'status-update', ...this.#ids, status: { state, ...statusMessage }, final };
  }

  #send(result) {
    this.#response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: this.#id, result })}\n\n`);
  }
}

function handle(body, response) {
  if (body.method !== 'message/stream') {
    // The agent keeps no tasks: a canceled task ends when the platform closes its stream.
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: body.id, error: { code: -32001, message: 'Task not found' } }));
    return;
  }
  void new Answer(response, body).run(behaviourFor(body));
}

/**
 * Starts the agent on a free port of this machine.
 * @returns {Promise<{ url: string, close: () => void }>}
 */
export async function startAgent() {
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(card(`http://${request.headers.host}/`)));
      return;
    }
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => handle(JSON.parse(Buffer.concat(chunks).toString()), response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}
