import type { Accepted } from '../../../messages/accept/accept.js';
import type { DispatchEnd, LiveMessage } from '../../../messages/dispatch/dispatches.js';
import { PlatformError } from '../../../runtime/errors.js';
import { allRead, answer } from './agents.js';
import type { Entry } from './context.js';
import type { Harness } from './harness.js';
import { ANSWER_FAULTS, SEND_FAULTS } from './inject-faults.js';
import { DeadProcess } from './life.js';
import type { Action, AgentName } from './script.js';

type Named<Name extends Action['do']> = Extract<Action, { do: Name }>;

/** Does the actions of a script, one after the other, and notes what callers are answered. */
export class Runner {
  /** Action by action. */
  readonly answers: string[] = [];
  /** The ends that callers were given by the fast path, by message. */
  readonly ends = new Map<string, NonNullable<DispatchEnd['message']>>();
  readonly #harness: Harness;
  /** In the order of their coming. */
  readonly #messageIds: string[] = [];
  readonly #sessionIds: string[] = [];

  constructor(harness: Harness) {
    this.#harness = harness;
  }

  /** Runs from an empty record to one at rest. */
  async run(script: Action[]): Promise<void> {
    const { faults } = this.#harness;
    await this.#harness.open();
    for (const action of script) {
      this.answers.push(`${action.do}: ${await this.#try(action)}`);
      await this.#harness.settle();
      faults.disarm();
    }
    await this.#end();
  }

  async #try(action: Action): Promise<string> {
    try {
      return await this.#do(action);
    } catch (error) {
      if (error instanceof PlatformError && error.statusCode !== 500) return error.code;
      throw error;
    }
  }

  async #do(action: Action): Promise<string> {
    switch (action.do) {
      case 'send':
        return this.#send(action);
      case 'answer':
        return this.#answer(action);
      case 'cancel':
      case 'take over':
      case 'resolve':
        return this.#toMessage(action);
      case 'close':
      case 'interrupt':
        return this.#toSession(action);
      case 'init':
        return this.#init(action);
      case 'leave':
      case 'resume':
      case 'reconnect':
        return this.#ofAgent(action);
      case 'die':
        await this.#harness.die();
        return 'done';
      case 'sweep':
        await this.#harness.workflows.sweep();
        return 'done';
      default:
        return action satisfies never;
    }
  }

  /** A caller who did not hear what became of the request sends it again. */
  async #send(action: Named<'send'>): Promise<string> {
    const { faults } = this.#harness;
    if (action.fault) {
      const { points, inject } = SEND_FAULTS[action.fault];
      const { agent } = action;
      faults.arm(points, (messageId, point) => inject(this.#harness, { messageId, point, agent }));
    }
    const first = await this.#accept(action);
    await this.#harness.settle();
    const accepted = first ?? (await this.#accept(action));
    if (!accepted) throw new Error('a message could not be sent again');
    this.#harness.loseFront();
    number(this.#sessionIds, accepted.session_id);
    return number(this.#messageIds, accepted.message_id);
  }

  async #accept({ client, text, session, agent }: Named<'send'>): Promise<Accepted | undefined> {
    const { fixture, entry } = this.#harness;
    const message = {
      kind: 'message' as const,
      role: 'user' as const,
      messageId: `client-${client}`,
      contextId: session === null ? undefined : pick(this.#sessionIds, session),
      parts: [{ kind: 'text' as const, text: `content ${text}` }],
    };
    const params = { message, metadata: { agent_type: agent } };
    try {
      const accepted = await entry.gateway.accept(fixture.caller, params, { method: 'message/send' });
      if (accepted.live) this.#follow(accepted.live, entry);
      return accepted;
    } catch (error) {
      const unheard = error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE';
      if (unheard || error instanceof DeadProcess) return undefined;
      throw error;
    }
  }

  #follow({ row, dispatch_id, ended }: LiveMessage, entry: Entry): void {
    const noted = ended.then(({ message }) => message && entry.alive && this.ends.set(row.message_id, message));
    const over = Promise.race([noted, entry.death]);
    this.#harness.inFlight.add(dispatch_id, 'owner', over);
  }

  async #answer(action: Named<'answer'>): Promise<string> {
    const { inbox, faults, inFlight } = this.#harness;
    const open = inbox.open(pick(this.#messageIds, action.message));
    const delivery = action.late ? open[0] : open.at(-1);
    if (!delivery) return 'nothing';
    if (action.fault) {
      const { points, inject } = ANSWER_FAULTS[action.fault];
      const agent = delivery.socket.instanceId as AgentName;
      faults.arm(points, (messageId, point) => inject(this.#harness, { messageId, point, agent }));
    }
    answer(delivery, action.how, 'the answer');
    await inFlight.ended(delivery.dispatch_id);
    await allRead(delivery.socket);
    return 'done';
  }

  async #toMessage(action: Named<'cancel' | 'take over' | 'resolve'>): Promise<string> {
    const { fixture, gateway, workflows } = this.#harness;
    const messageId = pick(this.#messageIds, action.message);
    if (messageId === undefined) return 'nothing';
    if (action.do === 'cancel') await gateway.cancel(fixture.caller, messageId, 'changed my mind');
    if (action.do === 'take over') await workflows.look(messageId);
    if (action.do === 'resolve') await gateway.resolve(fixture.caller, messageId, { resolution: action.resolution });
    return 'done';
  }

  async #toSession(action: Named<'close' | 'interrupt'>): Promise<string> {
    const { fixture, sessions } = this.#harness;
    const sessionId = pick(this.#sessionIds, action.session);
    if (sessionId === undefined) return 'nothing';
    if (action.do === 'close') await sessions.close(fixture.caller, sessionId);
    else await sessions.interrupt(fixture.caller, [sessionId]);
    return 'done';
  }

  async #init({ agent }: Named<'init'>): Promise<string> {
    const { fixture, sessions } = this.#harness;
    const { session } = await sessions.init(fixture.caller, { instance_id: agent, idle_timeout_seconds: 1_800 });
    return number(this.#sessionIds, session.session_id);
  }

  async #ofAgent(action: Extract<Action, { do: 'leave' | 'resume' | 'reconnect' }>): Promise<string> {
    const agent = this.#harness.agents[action.agent];
    if (action.do !== 'reconnect' && agent.socket) await agent.leave();
    if (action.do !== 'leave') await agent.connect(this.#harness.process, action.do === 'resume');
    return 'done';
  }

  /** Ends all that is not over: what an operator would do before going home. */
  async #end(): Promise<void> {
    const { fixture, gateway, sessions } = this.#harness;
    const going = await fixture.database.query<{ message_id: string }>(
      'SELECT message_id FROM messages WHERE tenant_id = $1 AND completed_at IS NULL ORDER BY created_at',
      [fixture.tenantId],
    );
    for (const { message_id } of going) await gateway.cancel(fixture.caller, message_id, 'the end');
    await this.#harness.settle();
    const open = await fixture.database.query<{ session_id: string }>(
      `SELECT session_id FROM sessions WHERE tenant_id = $1 AND status = 'active' ORDER BY created_at`,
      [fixture.tenantId],
    );
    for (const { session_id } of open) await sessions.close(fixture.caller, session_id);
    await this.#harness.settle();
  }
}

/** The one of that number, modulo how many there are; undefined when there is none. */
function pick(ids: string[], index: number): string | undefined {
  return ids[index % ids.length];
}

/** What an id is called on both paths. */
function number(ids: string[], id: string): string {
  if (!ids.includes(id)) ids.push(id);
  return `number ${ids.indexOf(id)}`;
}
