import { isTerminal } from '../../contracts/api/messages.js';
import { sessionDeps } from '../../messages/cancel.js';
import type { MessageCore } from '../../messages/core.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { AnswerOrFailure, DispatchRef } from '../../messages/dispatch/dispatches.js';
import { failByOperator, nextStep } from '../../messages/supervise/next-step.js';
import { PlatformError } from '../../runtime/errors.js';
import { expireIfIdle } from '../../sessions/session-end.js';
import { createSessions } from '../../sessions/sessions.js';
import { callerOf, emptyRecord, insertAgent, messageCore } from '../setup/core.js';
import type { FreshDatabase } from '../setup/database.js';
import { createGateway } from '../setup/gateway.js';

export const TENANT = 'ten_00000000-0000-7000-8000-000000000001';
const AGENTS = ['alpha', 'beta'];
const CALLER = callerOf(TENANT);
const MESH = 'mesh_test';
const IN_A_DAY = () => new Date(Date.now() + 90_000_000);

/** One step: what is done, to which of the things there are (modulo their number), and which of its variants. */
export interface PropertyStep {
  action: keyof typeof ACTIONS;
  target: number;
  variant: number;
}

/** What a step may be refused with; anything else that is thrown is a defect. */
const REFUSALS = new Set([
  'IDEMPOTENCY_MISMATCH',
  'SESSION_CLOSED',
  'ALREADY_TERMINAL',
  'ALREADY_RESOLVED',
  'NOT_AWAITING_INPUT',
  'AGENT_AT_CAPACITY',
  'CALLBACK_TOKEN_EXPIRED',
]);

interface StoredDispatch extends DispatchRef {
  session_id: string;
  epoch: number;
}

const answer = (state: AnswerOrFailure['state']): AnswerOrFailure => ({
  state,
  artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text: 'answer' }] }],
  ...(state === 'input-required' && { input_request: { kind: 'confirmation', title: 'Go on?' } }),
  ...(state === 'failed' && { error: { code: 'HANDLER_ERROR', message: 'broke' } }),
});

/** Does the steps on a real database through the functions that the platform itself uses, and counts what succeeded. */
export class PropertyDriver {
  readonly database: FreshDatabase;
  readonly core: MessageCore;
  readonly gateway: ReturnType<typeof createGateway>;
  readonly sessions: ReturnType<typeof createSessions>;
  readonly dispatches: ReturnType<typeof createDispatches>;
  /** How often something happened that may happen once, by what and to whom. */
  readonly once = new Map<string, number>();

  constructor(database: FreshDatabase) {
    this.database = database;
    this.core = messageCore(database.db());
    this.gateway = createGateway(this.core);
    this.sessions = createSessions(sessionDeps(this.core));
    this.dispatches = createDispatches(this.core);
  }

  /** An empty record with two agents of two sessions each. */
  async reset(): Promise<void> {
    this.once.clear();
    await emptyRecord(this.database, TENANT, MESH);
    const here = { mesh_id: MESH, connection_epoch: 1, max_concurrent_sessions: 2 };
    for (const instance_id of AGENTS) await insertAgent(this.database, { tenant_id: TENANT, instance_id, ...here });
  }

  async run(step: PropertyStep): Promise<void> {
    try {
      await ACTIONS[step.action](this, step.target, step.variant);
    } catch (error) {
      const code = error instanceof PlatformError ? error.code : undefined;
      if (code === undefined || !REFUSALS.has(code)) throw error;
    }
  }

  /** Ends all that is not over: what an operator would do before going home. */
  async finishAll(): Promise<void> {
    for (const { message_id, state } of await this.messages()) {
      if (!isTerminal(state)) await this.gateway.cancel(CALLER, message_id, 'the end');
    }
    const open = await this.database.query<{ session_id: string }>(
      "SELECT session_id FROM sessions WHERE status = 'active'",
    );
    for (const { session_id } of open) await this.sessions.close(CALLER, session_id);
  }

  messages(): Promise<{ message_id: string; state: string; ended: string }[]> {
    return this.database.query(
      `SELECT message_id, state, concat(state, completed_at, error_code, artifacts) AS ended FROM messages ORDER BY message_id DESC`,
    );
  }

  count(what: string, happened: boolean): void {
    if (happened) this.once.set(what, (this.once.get(what) ?? 0) + 1);
  }

  /** Any message, those that wait for a human first. */
  async message(target: number): Promise<string | undefined> {
    const all = await this.database.query<{ message_id: string }>(
      "SELECT message_id FROM messages ORDER BY state = 'input-required' DESC, message_id DESC",
    );
    return all[target % all.length]?.message_id;
  }

  async session(target: number): Promise<string | undefined> {
    const all = await this.database.query<{ session_id: string }>(
      'SELECT session_id FROM sessions ORDER BY session_id DESC',
    );
    return all[target % all.length]?.session_id;
  }

  /** Any dispatch there ever was, those that agents work on first: late answers come too. */
  async dispatch(target: number): Promise<StoredDispatch | undefined> {
    const all = await this.database.query<StoredDispatch>(
      `SELECT tenant_id, message_id, dispatch_id, m.session_id, epoch FROM dispatches d JOIN messages m USING (tenant_id, message_id)
        ORDER BY d.state = 'sent' DESC, d.state = 'open' DESC, dispatch_id DESC`,
    );
    return all[target % all.length];
  }
}

type Action = (driver: PropertyDriver, target: number, variant: number) => Promise<void>;

const onMessage =
  (work: (driver: PropertyDriver, messageId: string, variant: number) => Promise<void>): Action =>
  async (driver, target, variant) => {
    const messageId = await driver.message(target);
    if (messageId !== undefined) await work(driver, messageId, variant);
  };
const onSession =
  (work: (driver: PropertyDriver, sessionId: string) => Promise<void>): Action =>
  async (driver, target) => {
    const sessionId = await driver.session(target);
    if (sessionId !== undefined) await work(driver, sessionId);
  };
const onDispatch =
  (work: (driver: PropertyDriver, dispatch: StoredDispatch, variant: number) => Promise<void>): Action =>
  async (driver, target, variant) => {
    const dispatch = await driver.dispatch(target);
    if (dispatch) await work(driver, dispatch, variant);
  };
const takeAnswer = (state: AnswerOrFailure['state']) =>
  onDispatch(async (driver, dispatch, variant) => {
    const epoch = variant === 0 ? dispatch.epoch - 1 : dispatch.epoch;
    const produced = (await driver.dispatches.find(dispatch))?.produced ?? { artifacts: [], usage: null };
    const end = await driver.dispatches.end({ ...dispatch, produced }, answer(state), epoch);
    driver.count(`accepted ${dispatch.dispatch_id}`, end !== null);
  });

/** Everything that can happen to messages and sessions. */
export const ACTIONS = {
  init: async (driver, target) => {
    const instance_id = AGENTS[target % AGENTS.length];
    await driver.sessions.init(CALLER, { instance_id, idle_timeout_seconds: 1_800 });
  },
  /** Of five messageIds with two contents, with a session or without. */
  send: async (driver, target, variant) => {
    const contextId = variant % 2 === 0 ? await driver.session(target) : undefined;
    const text = variant % 4 === 3 ? 'other' : 'content';
    const params = {
      message: {
        kind: 'message',
        role: 'user',
        messageId: `client-${target % 5}`,
        contextId,
        parts: [{ kind: 'text', text }],
      },
    } as const;
    const { message_id } = await driver.gateway.accept(
      CALLER,
      { message: { ...params.message, parts: [...params.message.parts] } },
      { method: 'message/send' },
    );
    const repeat = await driver.gateway.accept(
      CALLER,
      { message: { ...params.message, parts: [...params.message.parts] } },
      { method: 'message/send' },
    );
    if (repeat.message_id !== message_id || !repeat.duplicate) throw new Error('a repeat made another message');
  },
  nextStep: onMessage(async (driver, message_id) => {
    await nextStep(driver.core, { tenant_id: TENANT, message_id });
  }),
  /** A day later: questions have run out, and so has the wait for an agent. */
  nextStepLate: onMessage(async (driver, message_id) => {
    await nextStep(driver.core, { tenant_id: TENANT, message_id }, IN_A_DAY);
  }),
  /** A dispatch is opened and sent, as a node does it. */
  deliver: onMessage(async (driver, message_id) => {
    const next = await nextStep(driver.core, { tenant_id: TENANT, message_id });
    if (next?.kind !== 'dispatch') return;
    const ref = { tenant_id: TENANT, message_id, dispatch_id: next.dispatch_id };
    const open = await driver.dispatches.find(ref);
    const sent = open && (await driver.dispatches.markSent(ref, { mesh_id: MESH, epoch: open.epoch }));
    driver.count(`sent ${next.dispatch_id}`, Boolean(sent));
  }),
  markSent: onDispatch(async (driver, dispatch, variant) => {
    const epoch = variant === 0 ? dispatch.epoch + 7 : dispatch.epoch;
    const sent = await driver.dispatches.markSent(dispatch, { mesh_id: MESH, epoch });
    driver.count(`sent ${dispatch.dispatch_id}`, sent !== null);
  }),
  complete: takeAnswer('completed'),
  ask: takeAnswer('input-required'),
  answerFailed: takeAnswer('failed'),
  fail: onDispatch(async (driver, dispatch) => {
    const error = { code: 'DEADLINE_EXCEEDED', message: 'late' };
    const produced = { artifacts: [], usage: null };
    const end = await driver.dispatches.end({ ...dispatch, produced }, { state: 'failed', error }, null);
    driver.count(`accepted ${dispatch.dispatch_id}`, end !== null);
  }),
  release: onDispatch(async (driver, dispatch) => {
    driver.count(`taken back ${dispatch.dispatch_id}`, await driver.dispatches.release(dispatch, 'ROUTE_LOST'));
  }),
  lose: onDispatch(async (driver, dispatch) => {
    await driver.dispatches.failAsLost(dispatch, 'AGENT_DISCONNECTED');
  }),
  cancel: onMessage(async (driver, messageId) => {
    await driver.gateway.cancel(CALLER, messageId, 'canceled');
    driver.count(`canceled ${messageId}`, true);
  }),
  resolve: onMessage(async (driver, messageId, variant) => {
    const { input_request } = await driver.gateway.get(CALLER, messageId);
    const resolution = variant % 2 === 0 ? 'confirmed' : 'declined';
    await driver.gateway.resolve(CALLER, messageId, { resolution, request_id: input_request?.request_id });
    driver.count(`resolved ${input_request?.request_id}`, true);
  }),
  failByOperator: onMessage((driver, message_id) =>
    failByOperator(driver.core, { tenant_id: TENANT, message_id }, { code: 'INTERNAL', message: 'terminated' }),
  ),
  close: onSession(async (driver, sessionId) => {
    await driver.sessions.close(CALLER, sessionId);
    driver.count(`closed ${sessionId}`, true);
  }),
  interrupt: onSession(async (driver, sessionId) => {
    await driver.sessions.interrupt(CALLER, [sessionId]);
  }),
  /** The session's idle time has passed. */
  idle: onSession(async (driver, session_id) => {
    await driver.database.query(
      `UPDATE sessions SET created_at = created_at - interval '1 day' WHERE session_id = $1`,
      [session_id],
    );
    await driver.database.query(
      `UPDATE messages SET updated_at = updated_at - interval '1 day' WHERE session_id = $1`,
      [session_id],
    );
    await expireIfIdle(sessionDeps(driver.core), { tenant_id: TENANT, session_id });
  }),
  /** The agent reconnects without its token. */
  reconnect: async (driver, target) => {
    await driver.database.query('UPDATE agents SET connection_epoch = connection_epoch + 1 WHERE instance_id = $1', [
      AGENTS[target % AGENTS.length],
    ]);
  },
} satisfies Record<string, Action>;
