/** The hosted agent behind the platform while a kit runs: it does what the kits' scenarios ask of a system under test. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { behaviourFor } from './behaviours.mjs';

function card(url) {
  return {
    protocolVersion: '0.3.0',
    name: 'conformance',
    description: 'Does what a conformance test asks for.',
    url,
    version: '1.0.0',
    capabilities: { streaming: true },
    defaultInputModes: ['*/*'], // the kit sends a file of a type of its own, and wants it taken
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'conformance', name: 'Conformance', description: 'Answers the tests of a kit.', tags: ['test'] }],
  };
}

/** One dispatch as server-sent events of A2A 0.3, each step when its time has come. Ends early when the platform hangs up. */
class Answer {
  #response;
  #id;
  #names;

  constructor(response, { id, params: { message }, session_context }) {
    this.#response = response;
    this.#id = id;
    this.#names = { taskId: message.taskId ?? `task-${session_context.message_id}`, contextId: message.contextId };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
  }

  async play(steps) {
    for (const step of steps) {
      if (this.#response.destroyed) return;
      if (step.waitMs) await delay(step.waitMs);
      else this.#send(this.#event(step));
    }
    this.#response.end();
  }

  #event({ state, message, artifact, append, lastChunk, reply }) {
    if (reply) return { kind: 'message', messageId: `reply-${this.#names.taskId}`, role: 'agent', parts: reply };
    if (artifact) return { kind: 'artifact-update', ...this.#names, artifact, append, lastChunk };
    const said = message && {
      message: { kind: 'message', messageId: `said-${this.#names.taskId}`, role: 'agent', parts: message },
    };
    const final = state !== 'working';
    return { kind: 'status-update', ...this.#names, status: { state, ...said }, final };
  }

  #send(result) {
    this.#response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: this.#id, result })}\n\n`);
  }
}

function handle(body, response) {
  if (body.method !== 'message/stream') {
    // It keeps no task: one that is asked for is gone, one that is to be canceled ended when its stream was let go.
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: body.id, error: { code: -32001, message: 'Task not found' } }));
    return;
  }
  void new Answer(response, body).play(behaviourFor(body));
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
