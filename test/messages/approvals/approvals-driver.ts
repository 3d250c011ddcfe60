import type { Caller } from '../../../contracts/api/auth.js';
import { cancelMessage } from '../../../messages/cancel.js';
import type { MessageCore } from '../../../messages/core.js';
import { askInput } from '../../../messages/input/ask.js';
import { digestOf } from '../../../messages/input/digest.js';
import { callerPrincipal } from '../../../messages/input/principals.js';
import { resolveAs } from '../../../messages/input/resolve.js';
import { lockRunning } from '../../../messages/read/read.js';
import { nextStep } from '../../../messages/supervise/next-step.js';
import { PlatformError } from '../../../runtime/errors.js';
import { newId } from '../../../runtime/ids.js';
import { callerOf, emptyRecord, insertAgent, messageCore } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';
import { createGateway } from '../../setup/gateway.js';

const TENANT = 'ten_00000000-0000-7000-8000-000000000002';
const SENDER = callerOf(TENANT);
const MESSAGES = 3;
const STAGES = ['admission', 'tool', 'plan', 'dispatch'] as const;
const REFUSALS = new Set([
  'ALREADY_RESOLVED',
  'NOT_AWAITING_INPUT',
  'CALLBACK_TOKEN_EXPIRED',
  'ALREADY_TERMINAL',
  'BAD_REQUEST',
]);

export interface ApprovalStep {
  action: keyof typeof APPROVAL_ACTIONS;
  target: number;
  variant: number;
}

const approver = (variant: number): Caller => ({
  ...SENDER,
  credential_id: `cred_${variant % 4}`,
  sub: `cred_${variant % 4}`,
});
/** Milliseconds since 1970, so far ahead that every request has run out. */
const IN_TWO_DAYS = () => new Date(Date.now() + 172_800_000);

/** Does what people and workflows do with requests, on a real database, and counts what was answered with success. */
export class ApprovalsDriver {
  readonly database: FreshDatabase;
  core: MessageCore;
  /** Approvals that left the message waiting, and those with edited arguments. */
  partial = 0;
  edits = 0;
  #ids: string[] = [];
  /** Decisions that callers were told had been taken, by request. */
  readonly #taken = new Map<string, number>();

  constructor(database: FreshDatabase) {
    this.database = database;
    this.core = messageCore(database.db());
  }

  async reset(): Promise<void> {
    this.#taken.clear();
    await emptyRecord(this.database, TENANT, 'mesh_test');
    await insertAgent(this.database, {
      tenant_id: TENANT,
      instance_id: 'alpha',
      mesh_id: 'mesh_test',
      connection_epoch: 1,
    });
    const gateway = createGateway(this.core);
    const accepted = Array.from({ length: MESSAGES }, async (_, index) => {
      const parts = [{ kind: 'text' as const, text: 'hello' }];
      const message = { kind: 'message' as const, role: 'user' as const, messageId: `client-${index}`, parts };
      return (await gateway.accept(SENDER, { message }, { method: 'message/send' })).message_id;
    });
    this.#ids = await Promise.all(accepted);
  }

  async run({ action, target, variant }: ApprovalStep): Promise<void> {
    try {
      await APPROVAL_ACTIONS[action](this, this.#ids[target % MESSAGES] as string, variant);
    } catch (error) {
      if (!(error instanceof PlatformError && REFUSALS.has(error.code))) throw error;
    }
  }

  messages(): Promise<{ message_id: string; state: string }[]> {
    return this.database.query('SELECT message_id, state FROM messages');
  }

  requests(): Promise<{ request_id: string; state: string; outcome: string }[]> {
    return this.database.query(
      `SELECT request_id, state, concat(state, answer, digest, ended_at, (SELECT count(*) FROM input_decisions d
          WHERE d.request_id = r.request_id)) AS outcome FROM input_requests r`,
    );
  }

  cancel(message_id: string): Promise<void> {
    return cancelMessage(this.core, { tenant_id: TENANT, message_id }, 'canceled');
  }

  /** Messages that were decided about, of which no workflow has made anything yet and that nobody would wake: neither routed nor waiting. */
  lostWakeUps(): Promise<object[]> {
    return this.database.query(
      `SELECT r.message_id FROM running_messages r
        WHERE r.wake_requested_at IS NULL AND (r.state = 'failed' OR r.state = 'working' AND r.resolution IS NOT NULL
          AND r.current_dispatch_id IS NULL AND r.unrouted_since IS NULL)`,
    );
  }

  /** Requests whose audit rows are not exactly the decisions that were answered with success. */
  async unaccountedDecisions(): Promise<string[]> {
    const rows = await this.database.query<{ request_id: string; made: number }>(
      `SELECT request_id, count(d.*) FILTER (WHERE d.principal_type <> 'system')::int AS made
         FROM input_requests LEFT JOIN input_decisions d USING (tenant_id, request_id) GROUP BY request_id`,
    );
    return rows
      .filter(({ request_id, made }) => made !== (this.#taken.get(request_id) ?? 0))
      .map(({ request_id }) => request_id);
  }

  async ask(message_id: string, variant: number): Promise<void> {
    const stage = STAGES[variant % STAGES.length] ?? 'admission';
    const request = {
      request_id: newId('req'),
      kind: 'approval' as const,
      source: stage === 'plan' ? ('plan' as const) : ('guard' as const),
      stage,
      title: 'May it?',
      prompt: '',
      guard: 'limits',
      ...(stage === 'tool' && { tool: 'pay', arguments: { n: 0 } }),
      digest: digestOf({ tool: 'pay', arguments: { n: 0 } }),
      terms: {
        approvers: [],
        quorum: 1 + (variant % 3),
        timeout_seconds: 86_400,
        reminder_seconds: 3_600,
        allow_self: true,
        on_reject: variant < 6 ? ('fail' as const) : ('tell_agent' as const),
      },
    };
    const ref = { tenant_id: TENANT, message_id };
    await this.core.db.tenant(TENANT, async (tx) => {
      const running = await lockRunning(tx, ref);
      const isIdle = running?.current_dispatch_id === null;
      if (running && (stage === 'tool' || isIdle)) await askInput(tx, ref, request);
    });
  }

  async decide(
    message_id: string,
    variant: number,
    answer: { resolution: string; arguments?: Record<string, unknown> },
  ) {
    const ref = { tenant_id: TENANT, message_id };
    let request_id = '';
    const principal = callerPrincipal(approver(variant));
    const resolved = await resolveAs(this.core, ref, answer, async (tx) => ({
      principal: {
        ...principal,
        mayAnswer: async (_tx, row, request) => {
          request_id = request.request_id;
          return principal.mayAnswer(tx, row, request);
        },
      },
    }));
    this.#taken.set(request_id, (this.#taken.get(request_id) ?? 0) + 1);
    if (resolved.new_state === 'input-required') this.partial += 1;
    if (answer.arguments) this.edits += 1;
  }
}

type Action = (driver: ApprovalsDriver, messageId: string, variant: number) => Promise<unknown>;

/** Everything that can happen to a message that may wait for a human. */
export const APPROVAL_ACTIONS = {
  ask: (driver, id, variant) => driver.ask(id, variant),
  approve: (driver, id, variant) => driver.decide(id, variant, { resolution: 'approved' }),
  reject: (driver, id, variant) => driver.decide(id, variant, { resolution: 'rejected' }),
  edit: (driver, id, variant) => driver.decide(id, variant, { resolution: 'approved', arguments: { n: variant % 2 } }),
  cancel: (driver, id) => driver.cancel(id),
  /** Its workflow looks: after a wake-up, after a restart, or without a reason. */
  look: (driver, message_id) => nextStep(driver.core, { tenant_id: TENANT, message_id }),
  remind: (driver, message_id, variant) =>
    nextStep(driver.core, { tenant_id: TENANT, message_id }, () => new Date(Date.now() + variant * 3_600_000)),
  expire: (driver, message_id) => nextStep(driver.core, { tenant_id: TENANT, message_id }, IN_TWO_DAYS),
  /** The process dies with everything that it knew, and another takes its place. */
  restart: async (driver) => {
    driver.core = messageCore(driver.database.db());
  },
} satisfies Record<string, Action>;
