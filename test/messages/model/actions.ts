import { randomUUID } from 'node:crypto';
import { sessionDeps } from '../../../messages/cancel.js';
import type { MessageRef } from '../../../messages/core.js';
import { digestOf } from '../../../messages/digest.js';
import type { AnswerOrFailure } from '../../../messages/dispatch/dispatches.js';
import { askInput } from '../../../messages/input/ask.js';
import { answerFollowUp } from '../../../messages/input/follow-up.js';
import { resolveAs } from '../../../messages/input/resolve.js';
import { lockRunning } from '../../../messages/read/read.js';
import { failByOperator, takeStep } from '../../../messages/supervise/next-step.js';
import { newId } from '../../../runtime/ids.js';
import { expireIfIdle } from '../../../sessions/session-end.js';
import {
  type GrantAnswer,
  holdToolCall,
  useToolGrant,
  withdrawToolCall,
} from '../../../tools/approvals/tool-grants.js';
import { textMessage } from '../../setup/core.js';
import { type Action, numbered } from '../../setup/model.js';
import { stepAndTake } from '../../setup/take.js';
import { approver, SENDER, TENANT, wayOf } from './deciders.js';
import { AGENTS, MESH, type RecordWorld, type StoredDispatch } from './world.js';

type Numbered = Action<RecordWorld, [target: number, variant: number]>;
const onMessage = (work: (world: RecordWorld, message: MessageRef, variant: number) => Promise<unknown>): Numbered =>
  numbered(async (world, target, variant) => {
    const message = await world.message(target);
    if (message) await work(world, message, variant);
  });
const onSession = (work: (world: RecordWorld, sessionId: string) => Promise<unknown>): Numbered =>
  numbered(async (world, target) => {
    const sessionId = await world.session(target);
    if (sessionId !== undefined) await work(world, sessionId);
  });
const onDispatch = (
  work: (world: RecordWorld, dispatch: StoredDispatch, variant: number) => Promise<unknown>,
): Numbered =>
  numbered(async (world, target, variant) => {
    const dispatch = await world.dispatch(target);
    if (dispatch) await work(world, dispatch, variant);
  });

const HOURS_MS = 3_600_000;
const later = (hours: number) => () => new Date(Date.now() + hours * HOURS_MS);
const TEXT = [{ artifactId: 'a', parts: [{ kind: 'text' as const, text: 'done' }] }];
const FAILED: AnswerOrFailure = {
  state: 'failed',
  artifacts: TEXT,
  error: { code: 'HANDLER_ERROR', message: 'broke' },
};
const COMPLETED: AnswerOrFailure = { state: 'completed', artifacts: TEXT };
const question = (variant: number): AnswerOrFailure => {
  const kind = variant % 2 === 0 ? ('confirmation' as const) : ('approval' as const);
  return { state: 'input-required', artifacts: [], input_request: { kind, title: 'May I?' } };
};
/** A guard that holds an agent's answer until a human approves it. */
const HELD = { guard: 'secrets', rule: 'token', reason: 'It holds a secret.', path: '' } as const;
const held = { ...HELD, decision: 'require_approval' } as const;

/** The agent brings this; in one variant of twelve over a connection that is not the dispatch's own. */
const answer = (resultOf: (variant: number) => AnswerOrFailure): Numbered =>
  onDispatch(async (world, dispatch, variant) => {
    const epoch = variant === 0 ? dispatch.epoch - 1 : dispatch.epoch;
    const produced = (await world.dispatches.find(dispatch))?.produced ?? { artifacts: [], usage: null };
    const end = await world.dispatches.end({ ...dispatch, produced }, resultOf(variant), epoch);
    world.countOnce(`accepted ${dispatch.dispatch_id}`, end);
  });

/** Everything that can happen to messages and sessions. */
export const MESSAGE_ACTIONS = {
  init: numbered<RecordWorld>((world, target) =>
    world.sessions.init(SENDER, { instance_id: AGENTS[target % AGENTS.length], idle_timeout_seconds: 1_800 }),
  ),
  /** Of five messageIds with two contents, with a session or without. */
  send: numbered<RecordWorld>(async (world, target, variant) => {
    const contextId = variant % 2 === 0 ? await world.session(target) : undefined;
    const text = variant % 4 === 3 ? 'other' : 'content';
    const message = textMessage(text, { messageId: `client-${target % 5}`, contextId });
    const { message_id } = await world.accept(message);
    const repeat = await world.accept(message);
    if (repeat.message_id !== message_id || !repeat.duplicate) throw new Error('a repeat made another message');
  }),
  /** It is taken a step further, by its workflow or a process: after a wake-up, after a restart, or without a reason. */
  look: onMessage((world, message, variant) =>
    takeStep(world.core, message, variant % 2 === 0 ? 'workflow' : 'process'),
  ),
  /** Days later: questions have run out, and so has the wait for an agent. */
  expire: onMessage((world, message) => takeStep(world.core, message, 'process', later(48))),
  /** Agents with room take what waits, as their node does. */
  deliver: onMessage(async (world, message) => {
    await stepAndTake(world.core, message, { meshId: MESH });
  }),
  complete: answer(() => COMPLETED),
  fail: answer(() => FAILED),
  agentAsks: answer(question),
  held: answer((variant) => ({ ...(variant % 2 === 0 ? COMPLETED : question(variant)), held })),
  timeOut: onDispatch(async (world, dispatch) => {
    const error = { code: 'DEADLINE_EXCEEDED', message: 'late' };
    const produced = { artifacts: [], usage: null };
    const end = await world.dispatches.end({ ...dispatch, produced }, { state: 'failed', error }, null);
    world.countOnce(`accepted ${dispatch.dispatch_id}`, end);
  }),
  release: onDispatch((world, dispatch) => world.dispatches.release(dispatch, 'ROUTE_LOST', { nothingSent: true })),
  /** The agent or its node is lost. */
  lose: onDispatch((world, dispatch) => world.dispatches.failAsLost(dispatch)),
  /** The agent reconnects without its token. */
  reconnect: numbered<RecordWorld>((world, target) =>
    world.database.query('UPDATE agents SET connection_epoch = connection_epoch + 1 WHERE instance_id = $1', [
      AGENTS[target % AGENTS.length],
    ]),
  ),
  cancel: onMessage(async (world, { message_id }) => {
    await world.gateway.cancel(SENDER, message_id, 'canceled');
    world.countOnce(`canceled ${message_id}`, true);
  }),
  failByOperator: onMessage((world, message) =>
    failByOperator(world.core, message, { code: 'INTERNAL', message: 'terminated' }),
  ),
  close: onSession(async (world, sessionId) => {
    await world.sessions.close(SENDER, sessionId);
    world.countOnce(`closed ${sessionId}`, true);
  }),
  interrupt: onSession((world, sessionId) => world.sessions.interrupt(SENDER, [sessionId])),
  /** The session's idle time has passed. */
  idle: onSession(async (world, session_id) => {
    const { database } = world;
    for (const [table, column] of [
      ['sessions', 'created_at'],
      ['messages', 'updated_at'],
    ])
      await database.query(`UPDATE ${table} SET ${column} = ${column} - interval '1 day' WHERE session_id = $1`, [
        session_id,
      ]);
    await expireIfIdle(sessionDeps(world.whole), { tenant_id: TENANT, session_id });
  }),
  /** The process dies, and another takes its place, which may die right after a commit, before it announces it. */
  restart: numbered<RecordWorld>(async (world, _target, variant) =>
    world.restart(variant % 3 === 0 ? undefined : 1 + (variant % 4)),
  ),
} satisfies Record<string, Numbered>;

/** Stages at which the platform asks by itself. */
const STAGES = ['admission', 'plan', 'dispatch'] as const;

/** A policy or a plan asks about a message that no agent has. */
async function askHumans(world: RecordWorld, message: MessageRef, variant: number): Promise<void> {
  const stage = STAGES[variant % STAGES.length] ?? 'admission';
  const request = {
    ...{ request_id: newId('req'), kind: 'approval' as const, stage, title: 'May it?', prompt: '', guard: 'limits' },
    source: stage === 'plan' ? ('plan' as const) : ('guard' as const),
    digest: digestOf({ stage }),
    terms: {
      ...{ approvers: [], quorum: 1 + (variant % 3), timeout_seconds: 86_400, reminder_seconds: 3_600 },
      ...{ allow_self: true, on_reject: variant < 6 ? ('fail' as const) : ('tell_agent' as const) },
    },
  };
  await world.core.db.tenant(TENANT, async (tx) => {
    const running = await lockRunning(tx, message);
    if (running?.current_dispatch_id === null) await askInput(tx, message, request);
  });
}

const decide = (answerOf: (variant: number) => { resolution: string; arguments?: Record<string, unknown> }): Numbered =>
  onMessage(async (world, message, variant) => {
    const { way, identify } = await wayOf(world.database, world.db, message.message_id, variant);
    const given = answerOf(variant);
    const { new_state } = await world.decided(message.message_id, way, (core) =>
      resolveAs(core, message, given, identify),
    );
    world.seen.note('below a quorum', new_state === 'input-required');
    world.seen.note('edited', given.arguments);
  });

/** What people do about messages that wait for them. */
export const HUMAN_ACTIONS = {
  ask: onMessage(askHumans),
  approve: decide(() => ({ resolution: 'approved' })),
  reject: decide(() => ({ resolution: 'rejected' })),
  edit: decide((variant) => ({ resolution: 'approved', arguments: { amount: 7 + (variant % 2) } })),
  /** An A2A message with the task's id answers what the agent asked. */
  followUp: onMessage(async (world, { message_id }, variant) => {
    const text = variant % 2 === 0 ? 'approve' : 'reject';
    const message = textMessage(text, { messageId: randomUUID(), taskId: message_id });
    await world.decided(message_id, 'follow-up', (core) => answerFollowUp(core, approver(variant), { message }));
  }),
  remind: onMessage((world, message, variant) => takeStep(world.core, message, 'workflow', later(variant))),
} satisfies Record<string, Numbered>;

const VERDICT = {
  decision: 'require_approval' as const,
  by: { source: 'policy' as const, policy_id: 'pol_1', name: 'careful', reason: 'It costs money.' },
  audits: [],
};
const EXECUTOR = { type: 'agent', id: 'bank' } as const;

/** A call that passes uses its grant. */
function notePassed(world: RecordWorld, { kind, request_id, arguments: approved }: GrantAnswer): void {
  if (kind !== 'granted' || request_id === null) return;
  world.passed.set(request_id, [...(world.passed.get(request_id) ?? []), approved]);
  world.seen.note('passed');
  world.seen.note('passed with edited arguments', Number(approved?.amount) > 5);
}

/** What agents do whose tool calls need approval. */
export const TOOL_ACTIONS = {
  /** The agent calls, for the first time or again. */
  call: onDispatch(async (world, { epoch: _, session_id: __, ...dispatch }, variant) => {
    const terms = { approvers: [], quorum: 1 + (variant % 2), timeout_seconds: 86_400, allow_self: true };
    const given = { tool: 'pay', arguments: { amount: variant % 2 }, executor: EXECUTOR, target: null };
    const held = await holdToolCall(world.db, {
      ...{ dispatch, meshId: MESH, useId: randomUUID(), ...given },
      ...{ verdict: { ...VERDICT, terms: { ...terms, on_reject: variant < 9 ? 'tell_agent' : 'fail' } } },
      policyRequest: { scope: 'tool', action: 'call', tool: 'pay' },
      stored: { payload: { tool: 'pay' }, deadline_ms: 1_000 },
    });
    if (held.kind === 'waits') world.waitingCalls.set(dispatch.dispatch_id, held.request_id ?? '');
    notePassed(world, held);
  }),
  /** The platform looks whether the call that waits may pass. */
  use: onDispatch(async (world, dispatch) => {
    const requestId = world.waitingCalls.get(dispatch.dispatch_id);
    if (requestId) notePassed(world, await useToolGrant(world.db, dispatch, requestId, true, randomUUID()));
  }),
  withdraw: onDispatch(async (world, dispatch) => {
    const requestId = world.waitingCalls.get(dispatch.dispatch_id);
    if (requestId) await withdrawToolCall(world.db, dispatch, requestId);
  }),
} satisfies Record<string, Numbered>;
