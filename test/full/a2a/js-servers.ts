import type { IncomingMessage, ServerResponse } from 'node:http';
import * as v1 from '@a2a-js/sdk';
import * as v1Server from '@a2a-js/sdk/server';
import type { AgentCard as AgentCard03, Message as Message03 } from 'a2a-sdk-0.3';
import * as v03Server from 'a2a-sdk-0.3/server';
import { httpServer } from '../../runtime/loopback-server.js';
import type { OfficialServer } from './official-server.js';

/** Where an agent on an SDK says what it does. */
interface Output {
  /** The task as it is; first of all. */
  task(): void;
  status(state: 'working' | 'input-required' | 'completed' | 'canceled', text?: string): void;
  artifact(text: string, append: boolean): void;
}

/** Answers `ask` with a question, works on `slow` until it is canceled, and says everything else back in two pieces. */
class Travel {
  canceled = 0;
  readonly #working = new Map<string, () => void>();

  async execute(taskId: string, text: string, isAnswer: boolean, out: Output): Promise<void> {
    out.task();
    if (isAnswer) this.#say(`to ${text}`, out);
    else if (text === 'ask') out.status('input-required', 'Where to?');
    else if (text === 'slow') {
      out.status('working', 'on the way');
      await new Promise<void>((resolve) => this.#working.set(taskId, resolve));
    } else {
      out.status('working', 'thinking');
      this.#say(`you said ${text}`, out);
    }
  }

  cancel(taskId: string, out: Output): void {
    this.canceled += 1;
    out.status('canceled');
    this.#working.get(taskId)?.();
  }

  #say(text: string, out: Output): void {
    const half = Math.floor(text.length / 2);
    out.artifact(text.slice(0, half), false);
    out.artifact(text.slice(half), true);
    out.status('completed');
  }
}

const COMMON = {
  name: 'Travel',
  description: 'Books travel.',
  version: '1.0.0',
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'book', name: 'Book', description: 'Books.', tags: ['travel'] }],
};

type Handle = (body: string, headers: IncomingMessage['headers']) => Promise<object | AsyncGenerator<object>>;

async function answer(request: IncomingMessage, response: ServerResponse, card: object, handle: Handle): Promise<void> {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(card));
    return;
  }
  const result = await handle(Buffer.concat(await request.toArray()).toString(), request.headers);
  if (!(Symbol.asyncIterator in result)) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(result));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for await (const event of result) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end();
}

/** @param agentAt makes the card and the handler for an address */
async function serve(
  travel: Travel,
  agentAt: (url: string) => { card: object; handle: Handle },
): Promise<OfficialServer> {
  let agent: ReturnType<typeof agentAt> | undefined;
  const server = await httpServer((request, response) => {
    if (agent) answer(request, response, agent.card, agent.handle).catch((error: Error) => response.destroy(error));
  });
  agent = agentAt(`${server.url}/`);
  return { url: `${server.url}/`, canceled: () => travel.canceled };
}

/** An agent on `@a2a-js/sdk` 1.x. */
export function serverOf1(streaming: boolean): Promise<OfficialServer> {
  const travel = new Travel();
  return serve(travel, (url) => {
    const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
    const card = { ...COMMON, supportedInterfaces, capabilities: { streaming } };
    const handler = new v1Server.DefaultRequestHandler(v1.AgentCard.fromJSON(card), new v1Server.InMemoryTaskStore(), {
      execute: async ({ taskId, contextId, task, userMessage }, bus) => {
        const text = userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
        await travel.execute(taskId, text, task !== undefined, outputOf1(bus, taskId, contextId, task));
        bus.finished();
      },
      cancelTask: async (taskId, bus) => {
        travel.cancel(taskId, outputOf1(bus, taskId, ''));
        bus.finished();
      },
    });
    const rpc = new v1Server.JsonRpcTransportHandler(handler);
    return {
      card,
      handle: async (body, headers) => {
        const requestedVersion = String(headers['a2a-version'] ?? '');
        return rpc.handle(body, new v1Server.ServerCallContext({ requestedVersion }));
      },
    };
  });
}

function outputOf1(bus: v1Server.ExecutionEventBus, taskId: string, contextId: string, task?: v1.Task): Output {
  const { AgentEvent } = v1Server;
  const statusOf = (state: string, text?: string) => ({
    state: `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`,
    ...(text !== undefined && {
      message: { messageId: crypto.randomUUID(), role: 'ROLE_AGENT', taskId, contextId, parts: [{ text }] },
    }),
  });
  return {
    task: () => {
      const first = { id: taskId, contextId, status: statusOf('submitted') };
      bus.publish(AgentEvent.task(task ?? v1.Task.fromJSON(first)));
    },
    status: (state, text) => {
      const update = { taskId, contextId, status: statusOf(state, text) };
      bus.publish(AgentEvent.statusUpdate(v1.TaskStatusUpdateEvent.fromJSON(update)));
    },
    artifact: (text, append) => {
      const update = { taskId, contextId, append, artifact: { artifactId: 'answer', parts: [{ text }] } };
      bus.publish(AgentEvent.artifactUpdate(v1.TaskArtifactUpdateEvent.fromJSON(update)));
    },
  };
}

/** An agent on `@a2a-js/sdk` 0.3. */
export function serverOf03(streaming: boolean): Promise<OfficialServer> {
  const travel = new Travel();
  return serve(travel, (url) => {
    const card: AgentCard03 = { ...COMMON, url, protocolVersion: '0.3.0', capabilities: { streaming } };
    const contexts = new Map<string, string>();
    const handler = new v03Server.DefaultRequestHandler(card, new v03Server.InMemoryTaskStore(), {
      execute: async ({ taskId, contextId, task, userMessage }, bus) => {
        contexts.set(taskId, contextId);
        const text = userMessage.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
        await travel.execute(taskId, text, task !== undefined, outputOf03(bus, taskId, contextId, task === undefined));
        bus.finished();
      },
      cancelTask: async (taskId, bus) => {
        travel.cancel(taskId, outputOf03(bus, taskId, contexts.get(taskId) ?? '', false));
        bus.finished();
      },
    });
    const rpc = new v03Server.JsonRpcTransportHandler(handler);
    return { card, handle: async (body) => rpc.handle(body) };
  });
}

function outputOf03(bus: v03Server.ExecutionEventBus, taskId: string, contextId: string, isNew: boolean): Output {
  const messageOf = (text: string): Message03 => ({
    kind: 'message',
    messageId: crypto.randomUUID(),
    role: 'agent',
    taskId,
    contextId,
    parts: [{ kind: 'text', text }],
  });
  return {
    task: () => {
      if (isNew) bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'submitted' } });
    },
    status: (state, text) => {
      const status = { state, ...(text !== undefined && { message: messageOf(text) }) };
      bus.publish({ kind: 'status-update', taskId, contextId, status, final: state !== 'working' });
    },
    artifact: (text, append) => {
      const artifact = { artifactId: 'answer', parts: [{ kind: 'text' as const, text }] };
      bus.publish({ kind: 'artifact-update', taskId, contextId, artifact, append });
    },
  };
}
