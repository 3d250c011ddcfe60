import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { FrameEnvelope } from '../../../contracts/frames.js';
import { MeshServer, type Refusal, type WelcomeChoice } from '../mesh-server.js';

/** An agent of one SDK with the handlers of the scenarios. */
export interface WireAgent {
  start(url: string, ca: string): void;
  close(graceSeconds: number): void;
  /** Resolves when the agent is over: the code that stopped it, null after a close. */
  ended(): Promise<string | null>;
}

type Step = {
  /** The next frame of this type that answers `reply_to`. `absent`: members that its payload must not have. */
  expect?: string;
  payload?: Record<string, unknown>;
  absent?: string[];
  /** The text in the artifact of that frame, and nothing else in it. */
  text?: string;
  reply_to?: string;
  /** A name for the frame; `$name` stands for its id. */
  as?: string;
  /** A frame of the platform. */
  send?: string;
  /** A dispatch of this text. */
  dispatch?: string;
  metadata?: object;
  skill?: string;
  parts?: object[];
  deadline_ms?: number;
  more?: object;
  /** A call of a tool of the agent. */
  tool_call?: string;
  arguments?: object;
  /** A request that the agent has sent to this path of the API. */
  request?: string;
  body?: object;
  /** Members of the next `welcome`. */
  welcome?: WelcomeChoice;
  /** The mesh keeps the socket of an agent that leaves open, as if something were in flight. */
  keeps_idle_open?: true;
  /** Cuts the newest socket. */
  cut?: true;
  /** Closes the newest socket with this code. */
  close_socket?: number;
  /** Closes the agent within this many seconds. */
  close?: number;
  /** The code with which the agent ends. */
  ended?: string | null;
};

interface Scenario {
  name: string;
  welcomes?: WelcomeChoice;
  token_lifetime_seconds?: number;
  /** Error answers of the API, by path: the agent cannot join. */
  refuses?: Record<string, Refusal>;
  /** Answers of the API to an agent that has joined, by path. */
  answers?: Record<string, object>;
  steps: Step[];
}

export const SCENARIOS = JSON.parse(readFileSync(join(import.meta.dirname, 'scenarios.json'), 'utf8')) as Scenario[];

/** Frames about work: each one that an agent sends has to be expected. */
const WORK = ['dispatch_chunk', 'dispatch_result', 'tool_call', 'tool_result', 'error', 'close_request', 'reauth'];

/** One run of a scenario against one agent. */
class Run {
  readonly #server: MeshServer;
  readonly #agent: WireAgent;
  readonly #ids = new Map<string, string>();
  readonly #seen = new Set<FrameEnvelope>();

  constructor(server: MeshServer, agent: WireAgent) {
    this.#server = server;
    this.#agent = agent;
  }

  async step(step: Step): Promise<void> {
    const server = this.#server;
    if (step.expect !== undefined) return this.#expect(step.expect, step);
    if (step.request !== undefined) {
      const [request] = server.requests.filter(({ path }) => path === step.request);
      return expect(request?.body).toMatchObject(step.body ?? {});
    }
    if (step.welcome) server.welcome = { ...server.welcome, ...step.welcome };
    else if (step.keeps_idle_open) server.keepsIdleOpen = true;
    else if (step.cut) server.sockets.at(-1)?.terminate();
    else if (step.close_socket !== undefined) server.sockets.at(-1)?.close(step.close_socket);
    else if (step.close !== undefined) this.#agent.close(step.close);
    else if (step.ended !== undefined) expect(await this.#agent.ended()).toBe(step.ended);
    else await this.#send(step);
  }

  /** Every frame about work was expected. */
  finish(): void {
    const unexpected = this.#server.frames.filter((frame) => WORK.includes(frame.type) && !this.#seen.has(frame));
    expect(unexpected).toEqual([]);
  }

  async #send(step: Step): Promise<void> {
    await this.#server.frame('heartbeat'); // the agent has taken the welcome
    if (step.dispatch !== undefined) this.#dispatch(step.dispatch, step);
    else if (step.tool_call !== undefined) this.#toolCall(step.tool_call, step);
    else {
      const inReplyTo = this.#idOf(step.reply_to);
      this.#name(step, this.#server.send(step.send ?? '', step.payload ?? {}, { ...(inReplyTo && { inReplyTo }) }));
    }
  }

  #dispatch(text: string, { as = '', metadata, skill, parts, deadline_ms, more }: Step): void {
    const known = this.#ids.get(as);
    const options = {
      ...(known && { id: known }),
      ...(metadata && { metadata }),
      ...(skill && { skillId: skill }),
      ...(parts && { parts }),
      ...(deadline_ms !== undefined && { deadlineMs: deadline_ms }),
      ...(more && { more }),
    };
    this.#ids.set(as, this.#server.dispatch(text, options));
  }

  #toolCall(tool: string, step: Step): void {
    const id = crypto.randomUUID();
    const caller = { agent_type: 'clerk', instance_id: 'clerk-1' };
    const payload = { tool, arguments: step.arguments, dispatch_id: `call_${id}`, deadline_ms: 60_000, caller };
    this.#name(step, this.#server.send('tool_call', { ...payload, idempotency_key: `call_${id}` }, { id }));
  }

  async #expect(type: string, step: Step): Promise<void> {
    const inReplyTo = this.#idOf(step.reply_to);
    const frame = await vi.waitFor(
      () => {
        const isNext = (each: FrameEnvelope) =>
          each.type === type && (!inReplyTo || each.in_reply_to === inReplyTo) && !this.#seen.has(each);
        const found = this.#server.frames.find(isNext);
        if (!found) throw new Error(`no ${type} yet, only ${JSON.stringify(this.#server.frames)}`);
        return found;
      },
      { timeout: 15_000, interval: 5 },
    );
    this.#seen.add(frame);
    this.#name(step, frame.id);
    expect(frame.payload).toMatchObject(this.#withIds({ ...step.payload, ...artifactIn(type, step.text) }));
    for (const member of step.absent ?? []) expect(frame.payload).not.toHaveProperty(member);
  }

  #name({ as }: Step, id: string): void {
    if (as !== undefined) this.#ids.set(as, id);
  }

  #idOf(name: string | undefined): string | undefined {
    return name === undefined ? undefined : (this.#ids.get(name) ?? name);
  }

  #withIds(payload: object): object {
    const text = JSON.stringify(payload).replace(/\$(\w+)/g, (whole, name: string) => this.#ids.get(name) ?? whole);
    return JSON.parse(text) as object;
  }
}

/** What a frame of this type holds an artifact with. */
function artifactIn(type: string, text: string | undefined): object {
  if (text === undefined) return {};
  const artifact = { parts: [{ text }] };
  return type === 'dispatch_chunk' ? { artifact } : { result: { artifacts: [artifact] } };
}

/** Runs one scenario. The agent is new, and over when the scenario is. */
export async function runScenario(scenario: Scenario, agent: WireAgent): Promise<void> {
  const server = await MeshServer.start();
  if (scenario.welcomes) server.welcome = scenario.welcomes;
  if (scenario.token_lifetime_seconds !== undefined) server.tokenLifetimeSeconds = scenario.token_lifetime_seconds;
  for (const [path, refusal] of Object.entries(scenario.refuses ?? {})) server.refusals.set(path, refusal);
  for (const [path, body] of Object.entries(scenario.answers ?? {})) server.refusals.set(path, { status: 200, body });
  const run = new Run(server, agent);
  agent.start(server.baseUrl, server.ca);
  if (!scenario.refuses) await server.frame('heartbeat');
  try {
    for (const step of scenario.steps) await run.step(step);
    run.finish();
  } finally {
    agent.close(0);
    await agent.ended();
  }
}
