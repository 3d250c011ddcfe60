import type { MessageInput } from '../../contracts/workflows.js';
import type { Statement, TenantCall } from '../../db/connections/statement.js';
import { newEventId } from '../../runtime/ids.js';
import type { MessageCore } from '../core.js';
import { questionCall } from '../input/agent-question.js';
import { heldOutputCall } from '../input/held-output.js';
import { readable } from '../read/readable.js';
import type { DispatchDetails } from '../read/rows.js';
import type { BusEvent } from '../stream/bus.js';
import type { DispatchState } from './dispatch-states.js';
import type {
  AnswerOrFailure,
  DispatchEnd,
  Dispatches,
  DispatchRef,
  EndingDispatch,
  LossConditions,
  NextDispatch,
  OpenDispatch,
} from './dispatches.js';
import { errorOf, logEnd, type StoredError } from './message-end.js';
import { openDispatchFrom, outputAfter } from './open-dispatch.js';
import { type TakenRow, takenDispatch } from './queues.js';
import { isOffered } from './transfers.js';

type StoreCore = Pick<MessageCore, 'db' | 'bus' | 'local' | 'limits' | 'log' | 'workflowStarter' | 'advance' | 'nodes'>;
type DispatchId = Pick<DispatchRef, 'tenant_id' | 'dispatch_id'>;
type FoundState = { dispatch_id: string; state: DispatchState };

/** The error with which `end_dispatches` undoes itself: the dispatch is not sent, or belongs to another epoch. */
const NOT_CURRENT = 'FL001';
/** The error of a message whose agent is gone, so that nobody knows what became of it. */
const LOST = { code: 'AGENT_DISCONNECTED', message: 'The connection to the agent was lost.' };

/** A `dispatch_end_result`. */
interface EndRow {
  /** ISO 8601. */
  ended_at: string | null;
  session_id: string;
  instance_id: string;
  agent_type: string;
  /** Messages whose next step this process takes. */
  woken: MessageInput[] | null;
  awaits: string | null;
  taken: TakenRow | null;
  take_again: boolean | null;
  /** The message's workflow has to be told of the end. */
  watched: boolean;
}

/** The complete transaction (db/functions/dispatches/end_dispatches.sql). */
const END: Statement<EndRow> = {
  name: 'end_dispatches',
  text: 'SELECT row_to_json(r) FROM unnest(end_dispatches($1, $2)) AS r',
  awaits: (row) => row.awaits,
};

/** The end of a dispatch and of its message. */
interface Completion extends Pick<AnswerOrFailure, 'decisions'> {
  next?: NextDispatch | undefined;
  state: 'completed' | 'failed' | 'lost';
  error: StoredError | null;
  output: ReturnType<typeof outputAfter>;
  /** Since the message was accepted, its row changes only by this end (`OpenDispatch.is_first`). */
  isFirst: boolean;
}

/** The transactions of a dispatch on Postgres, one SQL function each (dispatch-states.ts). */
class DispatchStore implements Dispatches {
  readonly #core: StoreCore;

  constructor(core: StoreCore) {
    this.#core = core;
  }

  async find(ref: DispatchId): Promise<OpenDispatch | null> {
    const row = await this.#details(ref);
    return row && openDispatchFrom(row);
  }

  async end(
    dispatch: EndingDispatch,
    result: AnswerOrFailure,
    epoch: number | null,
    next?: NextDispatch,
  ): Promise<DispatchEnd | null> {
    const detached = result.is_loss ? await this.#detach(dispatch, epoch) : null;
    if (detached) return detached;
    if (result.state === 'input-required' || result.held) return this.#ask(dispatch, result, epoch);
    const output = outputAfter(dispatch.produced, result);
    const error = result.state === 'failed' ? errorOf(result) : null;
    const { decisions } = result;
    const isFirst = dispatch.is_first === true;
    return this.#complete(dispatch, epoch, { state: result.state, error, output, decisions, next, isFirst });
  }

  async release(
    { tenant_id, message_id, dispatch_id }: DispatchRef,
    reason: string,
    { nothingSent = false, restsFirst = false } = {},
  ): Promise<void> {
    const [row] = await this.#core.db.call<{ session_id: string | null }>(
      tenant_id,
      'release_dispatch',
      'SELECT release_dispatch($1, $2, $3, $4, $5, $6) AS session_id',
      [tenant_id, message_id, dispatch_id, reason, nothingSent, newEventId()],
    );
    // The message's next step takes round trips. By then the taker has heard of a dispatch that was begun in vain, and leaves its agent alone.
    if (row?.session_id && !restsFirst) this.#core.advance({ tenant_id, message_id, session_id: row.session_id });
  }

  async failAsLost(ref: DispatchRef, conditions: LossConditions = {}): Promise<DispatchEnd | null> {
    let row = await this.#details(ref);
    while (row) {
      if (row.sent_at === null) {
        await this.release(ref, 'OWNER_LOST');
        return null;
      }
      if (!(await this.#isLost(row, conditions))) return null;
      const { epoch } = row;
      const loss = { state: 'lost', error: LOST, output: null, isFirst: false } as const;
      const end = (await this.#detach(ref, epoch)) ?? (await this.#complete(ref, epoch, loss));
      if (end) return end;
      // Nothing was written. If the agent has resumed the dispatch since it was read, here or at another node, the dispatch has another epoch: the loss is
      // checked again.
      row = await this.#details(ref);
      if (row?.epoch === epoch) return null;
    }
    return null;
  }

  async deadlineLeft({ tenant_id, dispatch_id }: DispatchRef): Promise<number | 'stands_still'> {
    const [row] = await this.#core.db.tenant(tenant_id, (tx) =>
      tx.query<{ left_ms: number | null }>(
        `SELECT (extract(epoch FROM deadline_at - now()) * 1000)::float8 AS left_ms FROM dispatches
          WHERE tenant_id = $1 AND dispatch_id = $2 AND state = 'sent'`,
        [tenant_id, dispatch_id],
      ),
    );
    return row ? (row.left_ms ?? 'stands_still') : 0;
  }

  openAmong(ids: DispatchId[]): Promise<FoundState[]> {
    return this.#among(ids, "d.state IN ('open', 'sent')");
  }

  closedAmong(ids: DispatchId[]): Promise<FoundState[]> {
    return this.#among(ids, "d.state NOT IN ('open', 'sent')");
  }

  async #among(ids: DispatchId[], which: string): Promise<FoundState[]> {
    if (ids.length === 0) return [];
    return this.#core.db.system((tx) =>
      tx.query<FoundState>(
        `SELECT d.dispatch_id, d.state FROM unnest($1::text[], $2::text[]) AS ref (tenant_id, dispatch_id)
           JOIN dispatches d USING (tenant_id, dispatch_id) WHERE ${which}`,
        [ids.map(({ tenant_id }) => tenant_id), ids.map(({ dispatch_id }) => dispatch_id)],
      ),
    );
  }

  async #isLost(row: DispatchDetails, { mesh_id, unlessOffered }: LossConditions): Promise<boolean> {
    if (mesh_id !== undefined && row.mesh_id !== mesh_id) return false;
    if (!unlessOffered) return true;
    return !(await this.#core.db.tenant(row.tenant_id, (tx) => isOffered(tx, row, row.instance_id)));
  }

  async #details(ref: DispatchId): Promise<DispatchDetails | null> {
    const [row] = await this.#core.db.call<DispatchDetails>(
      ref.tenant_id,
      'find_dispatch',
      'SELECT * FROM find_dispatch($1, $2)',
      [ref.tenant_id, ref.dispatch_id],
    );
    return row ? readable(row) : null;
  }

  /** Ends a dispatch as lost if its message can go on: a tool call of it waits for a human, or its skill is idempotent. @returns null for any other message */
  async #detach(ref: DispatchRef, epoch: number | null): Promise<DispatchEnd | null> {
    const { tenant_id, message_id, dispatch_id } = ref;
    const [row] = await this.#core.db.call<{ detached: boolean; session_id: string; instance_id: string }>(
      tenant_id,
      'detach_dispatch',
      'SELECT detached, session_id, instance_id FROM detach_dispatch($1, $2, $3, $4, $5, $6)',
      [tenant_id, message_id, dispatch_id, epoch, LOST.code, newEventId()],
    );
    if (!row?.detached) return null;
    this.#core.bus.publish(tenant_id, message_id, { kind: 'restarted' });
    this.#announce(ref, [{ tenant_id, message_id, session_id: row.session_id }], { kind: 'changed' });
    this.#core.nodes.fill({ tenant_id, instance_id: row.instance_id });
    return { state: 'lost', message: null };
  }

  /** Ends a dispatch and its message, in the complete transaction. */
  async #complete(
    ref: DispatchRef,
    epoch: number | null,
    { state, error, output, decisions, next, isFirst }: Completion,
  ): Promise<DispatchEnd | null> {
    const { tenant_id, message_id, dispatch_id } = ref;
    const ended = await this.#callEnd({
      ...{ tenant_id, message_id, dispatch_id, epoch },
      state,
      error_code: error?.code,
      error_message: error?.message,
      ...output,
      decisions,
      event_id: newEventId(),
      ...(next && {
        take_mesh: next.mesh_id,
        take_dispatch: next.dispatch_id,
        take_event: newEventId(),
        take_queue_from: next.queue_start?.queue_from,
      }),
    });
    if (!ended?.ended_at) return null;
    const { woken, session_id, instance_id, agent_type } = ended;
    const at = new Date(ended.ended_at);
    if (ended.watched) this.#core.workflowStarter.message({ tenant_id, message_id, session_id });
    const messageState = state === 'completed' ? 'completed' : 'failed';
    const failed = { error_code: error?.code ?? null, error_message: error?.message ?? null };
    const message = { state: messageState, ...failed, ...output, updated_at: at, completed_at: at } as const;
    if (isFirst) this.#core.local.note(message_id, { ...message, instance_id, agent_type });
    this.#announce(ref, woken ?? [], { kind: 'changed' });
    const ids = { tenant_id, message_id, dispatch_id, session_id, instance_id, agent_type, want_agent_type: null };
    if (error) logEnd(this.#core.log, { ...ids, state: messageState, code: error.code });
    if (ended.taken) return { state, message, next: takenDispatch(this.#core, ended.taken, next?.queue_start) };
    return { state, message, ...(ended.take_again && { next: 'again' }) };
  }

  async #callEnd(call: TenantCall): Promise<EndRow | undefined> {
    try {
      return await this.#core.db.batch(END, call);
    } catch (error) {
      if ((error as { code?: unknown }).code === NOT_CURRENT) return undefined;
      throw error;
    }
  }

  /** The agent asks a human, or a guard does about its answer: the dispatch ends, and the message waits for input. */
  async #ask(dispatch: EndingDispatch, result: AnswerOrFailure, epoch: number | null): Promise<DispatchEnd | null> {
    const call = result.held
      ? heldOutputCall(dispatch, result, result.held, epoch)
      : questionCall(dispatch, result, epoch, this.#core.limits.inputExpiryMs);
    const [row] = await this.#core.db.call<{ freed_id: string | null }>(
      dispatch.tenant_id,
      'ask_input',
      'SELECT ask_input($1) AS freed_id',
      [JSON.stringify(call)],
    );
    if (!row?.freed_id) return null;
    const { tenant_id, message_id, session_id } = dispatch;
    this.#announce(dispatch, [], { kind: 'changed', recorded: true });
    this.#core.workflowStarter.message({ tenant_id, message_id, session_id });
    return { state: 'input_required', message: null };
  }

  #announce(ref: DispatchRef, woken: MessageInput[], event: BusEvent): void {
    for (const message of woken) this.#core.advance(message);
    this.#core.bus.publish(ref.tenant_id, ref.message_id, event);
  }
}

/** The transitions of dispatches on the record. */
export function createDispatches(core: StoreCore): Dispatches {
  return new DispatchStore(core);
}
