import { isTerminal } from '../../../contracts/api/messages.js';
import { POLICY_OPERATIONS } from '../../../contracts/api/policies/policies.js';
import { createOutbound } from '../../../http/outbound.js';
import type { DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { resolveMessage } from '../../../messages/input/resolve.js';
import { nextStep } from '../../../messages/supervise/next-step.js';
import { createPolicyCatalog } from '../../../policy/policy-catalog.js';
import { createSecrets } from '../../../runtime/secrets.js';
import { until } from '../../setup/until.js';
import type { MeshFixture } from '../mesh-fixture.js';

const CreatePolicy = POLICY_OPERATIONS.createPolicy.request;

/** Makes a policy of the tenant about the tool `pay`, in force at once. @returns its id */
export async function policyAboutPay(
  fixture: MeshFixture,
  decision: 'deny' | 'require_approval' | 'audit',
  { approval = {}, ...fields }: { approval?: object; [field: string]: unknown } = {},
): Promise<string> {
  const outbound = createOutbound({ allowCidrs: [] });
  const { db, policies: engine } = fixture.core;
  const secrets = createSecrets(Buffer.alloc(32, 7).toString('base64'));
  const catalog = createPolicyCatalog({ db, secrets, outbound, engine });
  const about = { scope: 'tool', name: decision, match: { tools: ['pay'] }, reason: 'It costs money.' };
  const request = CreatePolicy.parse({ ...about, decision, evaluator: { approval }, ...fields });
  const { policy_id } = await catalog.create(fixture.tenantId, request);
  await outbound.close();
  return policy_id;
}

/** The record of a message whose tool calls wait. */
export class Approvals {
  readonly #fixture: MeshFixture;

  constructor(fixture: MeshFixture) {
    this.#fixture = fixture;
  }

  /** Waits until a human is asked. @returns the open request */
  async asked(ref: DispatchRef): Promise<{ request_id: string; tool?: string; arguments?: unknown }> {
    await until(async () => (await this.#fixture.message(ref)).state === 'input-required');
    const { input_request } = await this.#fixture.message(ref);
    if (!input_request) throw new Error('nobody was asked');
    return input_request;
  }

  resolve(ref: DispatchRef, resolution: string, body: object = {}) {
    const { core, caller } = this.#fixture;
    return resolveMessage(core, caller, ref.message_id, { resolution, ...body });
  }

  /** The states of all requests of a message, the oldest first. */
  async requests(ref: DispatchRef): Promise<string[]> {
    const rows = await this.#fixture.database.query<{ state: string }>(
      'SELECT state FROM input_requests WHERE message_id = $1 ORDER BY requested_at, request_id',
      [ref.message_id],
    );
    return rows.map(({ state }) => state);
  }

  async dispatch(ref: DispatchRef): Promise<Record<string, unknown>> {
    const [row] = await this.#fixture.database.query('SELECT * FROM dispatches WHERE dispatch_id = $1', [
      ref.dispatch_id,
    ]);
    return row ?? {};
  }

  /** What the workflow of the message would do now: the next dispatch of a message that lost its own. */
  async nextDispatch(ref: DispatchRef): Promise<DispatchRef> {
    const step = await nextStep(this.#fixture.core, ref);
    if (step?.kind !== 'dispatch') throw new Error(`no dispatch: ${JSON.stringify(step)}`);
    return { ...ref, dispatch_id: step.dispatch_id };
  }

  async ended(ref: DispatchRef) {
    await until(async () => isTerminal((await this.#fixture.message(ref)).state));
    return this.#fixture.message(ref);
  }
}
