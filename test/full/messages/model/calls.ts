import { randomUUID } from 'node:crypto';
import { Task } from '../../../../contracts/a2a/a2a.js';
import { isTerminal } from '../../../../contracts/message-states.js';
import type { RpcAnswer } from '../../../setup/platform/api-client.js';
import type { Home } from '../../../setup/platform/fleet.js';
import { type FleetAgent, SKILLS, TYPES } from './agents.js';
import type { ScriptMessage, ScriptSession, Wish, World } from './world.js';

/** Refusals of a platform that is in trouble: the call may be made again. */
const IN_TROUBLE = new Set([500, 502, 503, 504]);
const TRY_AGAIN = 429;
export const pick = <T>(all: readonly T[], index: number): T | undefined => all[index % all.length];
export const homeOf = (world: World, index: number) => pick(world.homes, index) as Home;

/** Posts; of a platform in trouble, or one that dies meanwhile, nobody knows whether it was done. */
async function post(world: World, by: number, path: string, body: object): Promise<'done' | 'refused' | 'unknown'> {
  try {
    const { status } = await homeOf(world, by).client.post(path, body);
    if (IN_TROUBLE.has(status) && !world.nodes.wereInTrouble) world.defects.push(`${path} answered ${status}`);
    if (IN_TROUBLE.has(status) || status === TRY_AGAIN) return 'unknown';
    return status === 200 ? 'done' : 'refused';
  } catch (error) {
    if (!world.nodes.wereInTrouble) throw error;
    return 'unknown';
  }
}

export interface SendArgs {
  at: number;
  to: 'type' | 'instance' | 'idempotent' | 'plain' | 'session' | 'ordered' | 'nobody';
  wish: Wish;
  blocking: boolean;
  by: number;
}

/** An existing session of its kind, or a new one; the agents that a message fits; and how its caller says so. */
function targetOf(world: World, { at, to }: SendArgs) {
  const isOrdered = to === 'ordered';
  const known = world.sessions.filter((one) => one.id && one.isOrdered === isOrdered);
  const existing = isOrdered || to === 'session' ? pick(known, at) : undefined;
  const agent = to === 'instance' ? pick(world.agents, at) : undefined;
  const type = agent?.options.type ?? pick(TYPES, at) ?? '';
  const session: ScriptSession = existing ?? { id: undefined, type, isOrdered: false, isClosed: false };
  const agent_type = to === 'nobody' ? 'nobody' : session.type;
  const fits = (one: FleetAgent) => (agent ? one === agent : one.options.type === agent_type);
  const skill = to === 'idempotent' || to === 'plain' ? { skill_id: SKILLS[to] } : {};
  const metadata = agent ? { instance_id: agent.options.instanceId } : { agent_type, ...skill };
  return { session, fits, metadata, hasTarget: world.agents.some(fits), isIdempotent: to === 'idempotent' };
}

export async function send(world: World, args: SendArgs): Promise<void> {
  const { metadata, ...target } = targetOf(world, args);
  const { session } = target;
  const key = `${args.wish} ${randomUUID()}`;
  const options = { messageId: key, metadata, ...(session.id && { contextId: session.id }) };
  const message: ScriptMessage = {
    ...{ key, wish: args.wish, options, opensSession: session.id === undefined, ...target },
    ...{ arrivals: [], decisions: [], decided: 0, isUnknown: false, isRefused: false },
    ...{ cancelAsked: session.isClosed, isCanceled: false, mayBeLost: false, wasAlone: false },
    ...{ sentAt: performance.now(), acceptedAt: Number.POSITIVE_INFINITY },
  };
  world.messages.push(message);
  if (!world.sessions.includes(session)) world.sessions.push(session);
  world.noteAlone();
  const call = request(world, message, args.blocking, args.by);
  if (args.blocking) world.calls.push(call);
  else await call;
}

/** Sends the message, perhaps not for the first time. */
export async function request(world: World, message: ScriptMessage, blocking: boolean, by: number): Promise<void> {
  let answer: RpcAnswer;
  try {
    answer = await homeOf(world, by).client.rpc(message.key, { ...message.options, blocking });
  } catch (error) {
    if (!world.nodes.wereInTrouble) throw error;
    message.isUnknown = message.id === undefined;
    return;
  }
  if (answer.result === undefined) return refused(world, message, answer);
  const task = Task.parse(answer.result);
  world.learnId(message, task.id, task.contextId);
  message.acceptedAt = Math.min(message.acceptedAt, performance.now());
  message.isUnknown = false;
  if (isTerminal(task.status.state)) message.answeredState ??= task.status.state;
}

function refused(world: World, message: ScriptMessage, { status, error, body }: RpcAnswer): void {
  if (message.session.isClosed && JSON.stringify(error?.data ?? '').includes('SESSION_CLOSED'))
    message.isRefused = message.id === undefined;
  else if (status === TRY_AGAIN || (world.nodes.wereInTrouble && IN_TROUBLE.has(status)))
    message.isUnknown = message.id === undefined;
  else world.defects.push(`${message.key} was refused: ${status} ${JSON.stringify(body)}`);
}

export async function decide(world: World, message: ScriptMessage, resolution: string, by: number): Promise<void> {
  const at = performance.now();
  message.decisions.push(at);
  const outcome = await post(world, by, `/messages/${message.id}/resolve`, { resolution });
  if (outcome === 'refused') message.decisions.splice(message.decisions.indexOf(at), 1);
  if (outcome === 'done') message.decided += 1;
}

export async function cancel(world: World, message: ScriptMessage, by: number): Promise<void> {
  world.askCancel([message]);
  const outcome = await post(world, by, '/messages/cancel', { message_id: message.id });
  if (outcome === 'done') message.isCanceled = true;
}

/** Interrupts or closes a session: what is in flight in it is canceled, also what was accepted meanwhile. */
export async function stopSession(
  world: World,
  session: ScriptSession,
  how: 'interrupt' | 'close',
  by: number,
): Promise<void> {
  if (how === 'close') session.isClosed = true;
  world.askCancel(world.ofSession(session));
  await post(world, by, `/sessions/${how}`, { session_id: session.id });
  world.askCancel(world.ofSession(session));
}
