import { OkResponse } from '../../../../contracts/api/agents.js';
import type { Agent, AgentTask, TaskResult } from '../../../../sdk/index.js';
import { agentWith } from '../../../sdk/agents.js';
import { type Home, JournalingAgent } from '../../../setup/platform/fleet.js';
import { gate } from '../../../setup/until.js';
import type { AgentAnswer } from './rules.js';

export const TYPES = ['clerk', 'porter'] as const;
/** Of messages that may be done twice, and of those that may not. */
export const SKILLS = { idempotent: 'look-up', plain: 'pay' };
const QUESTION = { kind: 'confirmation', title: 'Go on?', prompt: 'Go on?' } as const;

/** A dispatch as an agent has it. */
export interface Delivery {
  instanceId: string;
  messageId: string;
  sessionId: string;
  dispatchId: string;
  text: string;
  /** A person has answered its agent's question. */
  isDecided: boolean;
  /** Answers, once. */
  end(how: AgentAnswer): void;
}

export interface FleetAgentOptions {
  home: Home;
  instanceId: string;
  type: string;
  maxSessions: number;
  onDelivery(delivery: Delivery): void;
}

/** An instance of the fleet. The program that runs it ends and is started anew, and then knows nothing of the work before. */
export abstract class FleetAgent {
  /** Whether its program runs. */
  isHere = false;
  isDraining = false;
  /** Answers what it has not finished when it leaves. */
  readonly failsUnfinished: boolean = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(readonly options: FleetAgentOptions) {}

  start(): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.isHere) await this.run();
      this.isHere = true;
    });
  }

  leave(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.isHere) await this.end();
      this.isHere = false;
    });
  }

  /** What it reports lasts until its next report. */
  report(status: 'draining' | 'available'): Promise<void> {
    const { home, instanceId } = this.options;
    return this.#inTurn(async () => {
      this.isDraining = true; // until it is known not to be
      await home.client.ok('/agents/heartbeat', { instance_id: instanceId, status }, OkResponse);
      this.isDraining = status === 'draining';
    });
  }

  protected abstract run(): Promise<void>;
  protected abstract end(): Promise<void>;

  /** A script may have it leave and come back, or report two things, at the same moment. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

/** One with a socket that it can lose and resume: the SDK's agents do not show theirs. */
export class ConnectedAgent extends FleetAgent {
  #agent: JournalingAgent | undefined;

  /** The network takes its socket. It comes back with its work. */
  drop(): void {
    this.#agent?.drop();
  }

  protected async run(): Promise<void> {
    const { home, instanceId, type, maxSessions, onDelivery } = this.options;
    const skills = Object.values(SKILLS).map((id) => ({ id }));
    const fields = { instanceId, agentType: type, maxConcurrentSessions: maxSessions, skills, keepsWork: true };
    this.#agent = new JournalingAgent(home, { ...fields, idempotentSkills: [SKILLS.idempotent] }, (dispatch) => {
      const { dispatch_id, session_context, params } = dispatch.payload;
      const end = (how: AgentAnswer): void => {
        if (how === 'result') dispatch.result(dispatch.text);
        else if (how === 'failure') dispatch.error('HANDLER_ERROR', 'broke');
        else dispatch.ask(QUESTION);
      };
      const { message_id: messageId, session_id: sessionId } = session_context;
      const isDecided = params.metadata?.resolution !== undefined;
      onDelivery({ instanceId, messageId, sessionId, dispatchId: dispatch_id, text: dispatch.text, isDecided, end });
    });
    await this.#agent.start();
  }

  protected end(): Promise<void> {
    return this.#agent?.stop() ?? Promise.resolve();
  }
}

/** One of the SDK that the platform calls. */
export class HostedAgent extends FleetAgent {
  /** With `HANDLER_ERROR`, also what may be done twice. */
  override readonly failsUnfinished = true;
  #agent: Agent | undefined;
  #port: number | undefined;

  protected async run(): Promise<void> {
    const { home, instanceId, type, maxSessions } = this.options;
    const { base_url: url, client_id: clientId, client_secret: clientSecret } = home.devJson();
    const access = { url, clientId, clientSecret, type, instanceId, maxConcurrentSessions: maxSessions };
    const { agent } = agentWith(access);
    const handler = (task: AgentTask) => this.#work(task);
    agent.onMessage(handler).skill(SKILLS.plain, handler);
    agent.skill({ id: SKILLS.idempotent, idempotent: true }, handler);
    const address = await agent.serve({ port: this.#port ?? 0 });
    this.#port = Number(new URL(address).port);
    this.#agent = agent;
  }

  protected end(): Promise<void> {
    return this.#agent?.close(0) ?? Promise.resolve();
  }

  async #work(task: AgentTask): Promise<TaskResult> {
    const { promise, open: end } = gate<AgentAnswer>();
    const { messageId, sessionId, dispatchId, text } = task;
    const { onDelivery, instanceId } = this.options;
    onDelivery({ instanceId, messageId, sessionId, dispatchId, text, isDecided: Boolean(task.resolution), end });
    const how = await promise;
    if (how === 'question') return task.ask(QUESTION);
    return how === 'result' ? text : { state: 'failed', message: 'broke' };
  }
}
