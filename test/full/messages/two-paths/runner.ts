import fc from 'fast-check';
import type { Accepted } from '../../../../messages/accept/accept.js';
import type { DispatchEnd, LiveMessage } from '../../../../messages/dispatch/dispatches.js';
import { PlatformError } from '../../../../runtime/errors.js';
import { textMessage } from '../../../setup/core.js';
import { type Action, runStep, type Script, type Step, scriptsOf } from '../../../setup/model.js';
import { AGENTS, type AgentName, ANSWERS, allRead, answer } from './agents.js';
import type { Harness } from './harness.js';
import { ANSWER_FAULTS, armFault, SEND_FAULTS } from './inject-faults.js';
import { DeadProcess, type Entry } from './life.js';

/** Numbers stand for the messages and sessions there are, in order of their coming, modulo their number. */
const message = fc.nat(5);
const session = fc.nat(2);
const agent = fc.constantFrom(...AGENTS);
/** Every other time one of these. */
const fault = <T extends string>(faults: Record<T, unknown>) =>
  fc.oneof(fc.constant(null), fc.constantFrom(...(Object.keys(faults) as T[])));
const SEND = fc.record({
  client: fc.nat(9),
  text: fc.nat(5).map((n) => (n === 0 ? 1 : 0)),
  session: fc.option(session),
  agent,
  fault: fault(SEND_FAULTS),
});
const ANSWER = fc.record({
  message,
  how: fc.constantFrom(...ANSWERS),
  late: fc.nat(4).map((n) => n === 0),
  fault: fault(ANSWER_FAULTS),
});
type Of<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Args> ? Args : never;

/** Does the actions of a script, one after the other, and notes what callers are answered. */
export class Runner {
  /** Action by action. */
  readonly answers: string[] = [];
  /** The ends that callers were given by the fast path, by message. */
  readonly ends = new Map<string, NonNullable<DispatchEnd['message']>>();
  readonly harness: Harness;
  /** In the order of their coming. */
  readonly messageIds: string[] = [];
  readonly sessionIds: string[] = [];

  constructor(harness: Harness) {
    this.harness = harness;
  }

  /** Runs from an empty record to one at rest. */
  async run(script: Script): Promise<void> {
    await this.harness.open();
    for (const step of script.flat()) {
      this.answers.push(`${step[0]}: ${await this.#try(step)}`);
      await this.harness.settle();
      this.harness.faults.disarm();
    }
    await this.#end();
  }

  async #try(step: Step): Promise<unknown> {
    try {
      return (await runStep(ACTIONS, this, step)) ?? 'done';
    } catch (error) {
      if (error instanceof PlatformError && error.statusCode !== 500) return error.code;
      throw error;
    }
  }

  /** A caller who did not hear what became of the request sends it again. */
  async send(args: Of<typeof SEND>): Promise<string> {
    const { harness } = this;
    if (args.fault) armFault(harness, SEND_FAULTS[args.fault], args.agent);
    const first = await this.#accept(args);
    await harness.settle();
    const accepted = first ?? (await this.#accept(args));
    if (!accepted) throw new Error('a message could not be sent again');
    harness.loseFront();
    this.named(this.sessionIds, accepted.session_id);
    return this.named(this.messageIds, accepted.message_id);
  }

  async #accept({ client, text, session: of, agent: agent_type }: Of<typeof SEND>): Promise<Accepted | undefined> {
    const { fixture, entry } = this.harness;
    const contextId = of === null ? undefined : pick(this.sessionIds, of);
    const sent = textMessage(`content ${text}`, { messageId: `client-${client}`, contextId });
    const params = { message: sent, metadata: { agent_type } };
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

  #follow({ row, dispatch_id, ended }: LiveMessage, { life }: Entry): void {
    const noted = ended.then(({ message: end }) => end && life.alive && this.ends.set(row.message_id, end));
    this.harness.inFlight.add(dispatch_id, 'owner', Promise.race([noted, life.death]));
  }

  async answer(args: Of<typeof ANSWER>): Promise<string> {
    const { harness } = this;
    const open = harness.inbox.open(pick(this.messageIds, args.message));
    const delivery = args.late ? open[0] : open.at(-1);
    if (!delivery) return 'nothing';
    if (args.fault) armFault(harness, ANSWER_FAULTS[args.fault], delivery.socket.instanceId as AgentName);
    answer(delivery, args.how, 'the answer');
    await harness.inFlight.ended(delivery.dispatch_id);
    await allRead(delivery.socket);
    return 'done';
  }

  /** Ends all that is not over: what an operator would do before going home. */
  async #end(): Promise<void> {
    const { fixture, gateway, sessions } = this.harness;
    const going = 'SELECT message_id FROM messages WHERE tenant_id = $1 AND completed_at IS NULL ORDER BY created_at';
    for (const id of await fixture.database.column<string>(going, [fixture.tenantId]))
      await gateway.cancel(fixture.caller, id, 'the end');
    await this.harness.settle();
    const open = `SELECT session_id FROM sessions WHERE tenant_id = $1 AND status = 'active' ORDER BY created_at`;
    for (const id of await fixture.database.column<string>(open, [fixture.tenantId]))
      await sessions.close(fixture.caller, id);
    await this.harness.settle();
  }

  /** What an id is called on both paths. */
  named(ids: string[], id: string): string {
    if (!ids.includes(id)) ids.push(id);
    return `number ${ids.indexOf(id)}`;
  }
}

/** The one of that number, modulo how many there are; undefined when there is none. */
function pick(ids: string[], index: number): string | undefined {
  return ids[index % ids.length];
}

const action = <Args>(args: fc.Arbitrary<Args>, run: (runner: Runner, args: Args) => Promise<unknown>) =>
  ({ args, run }) satisfies Action<Runner, Args>;
const onMessage = (work: (harness: Harness, messageId: string) => Promise<unknown>) =>
  action(message, async ({ harness, messageIds }, index) => {
    const id = pick(messageIds, index);
    return id === undefined ? 'nothing' : void (await work(harness, id));
  });
const onSession = (work: (harness: Harness, sessionId: string) => Promise<unknown>) =>
  action(session, async ({ harness, sessionIds }, index) => {
    const id = pick(sessionIds, index);
    return id === undefined ? 'nothing' : void (await work(harness, id));
  });
const onAgent = (leaves: boolean, connects: 'anew' | 'resuming' | null) =>
  action(agent, async ({ harness }, name) => {
    const one = harness.agents[name];
    if (leaves && one.socket) await one.leave();
    if (connects) await one.connect(harness.process, connects === 'resuming');
  });
const resolve = (resolution: string) =>
  onMessage(({ gateway, fixture }, id) => gateway.resolve(fixture.caller, id, { resolution }));

const ACTIONS = {
  send: action(SEND, (runner, args) => runner.send(args)),
  answer: action(ANSWER, (runner, args) => runner.answer(args)),
  cancel: onMessage(({ gateway, fixture }, id) => gateway.cancel(fixture.caller, id, 'changed my mind')),
  'take over': onMessage(({ workflows }, id) => workflows.look(id)),
  confirm: resolve('confirmed'),
  decline: resolve('declined'),
  close: onSession(({ sessions, fixture }, id) => sessions.close(fixture.caller, id)),
  interrupt: onSession(({ sessions, fixture }, id) => sessions.interrupt(fixture.caller, [id])),
  init: action(agent, async (runner, instance_id) => {
    const { sessions, fixture } = runner.harness;
    const opened = await sessions.init(fixture.caller, { instance_id, idle_timeout_seconds: 1_800 });
    return runner.named(runner.sessionIds, opened.session.session_id);
  }),
  leave: onAgent(true, null),
  resume: onAgent(true, 'resuming'),
  reconnect: onAgent(false, 'anew'),
  die: action(fc.constant(null), ({ harness }) => harness.die()),
  sweep: action(fc.constant(null), ({ harness }) => harness.workflows.sweep()),
};

/** Scripts of things that happen to a platform one after the other, each with at most one fault in its middle. */
export const scripts = scriptsOf(ACTIONS, { weights: { send: 16, answer: 16, init: 2 }, moments: [5, 12], atOnce: 1 });
