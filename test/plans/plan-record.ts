import { createPlanActivities } from '../../activities/plan.js';
import type { Plan } from '../../contracts/api/plans.js';
import type { PlanInput } from '../../contracts/workflows.js';
import type { AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { advancePlan } from '../../plans/advance.js';
import { answerMessage } from '../api/moving.js';
import type { ServedApi } from '../api/served-api.js';
import { insertAgent } from '../setup/core.js';
import { stepAndTake } from '../setup/take.js';
import { createPlan, readPlan, stepStates } from './plan-fixture.js';

/** What an agent answers; nothing while it works on. */
type Answers = (text: string, messageId: string) => AnswerOrFailure | null;

/** More rounds than this are a loop. */
const ROUNDS_MAX = 100;

export const done = (text: string): AnswerOrFailure => ({
  state: 'completed',
  artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text }] }],
});
export const failed = (code: string, message = 'it broke'): AnswerOrFailure => ({
  state: 'failed',
  error: { code, message },
});

/** The plans on the record of an API, with what their workflows, the workflows of their messages and their agents do. Each has a turn when a test moves a plan. */
export class PlanRecord {
  readonly api: ServedApi;
  readonly activities: ReturnType<typeof createPlanActivities>;
  readonly #agents = new Map<string, Answers>();

  constructor(api: ServedApi) {
    this.api = api;
    this.activities = createPlanActivities({ accept: api.messages, stepStarted: () => undefined });
  }

  /** The only agent of its type, without a bound. It echoes where nothing is said. */
  async agent(agent_type: string, answers: Answers = (text) => done(`echo: ${text}`)): Promise<void> {
    if (!this.#agents.has(agent_type)) {
      const agent = { instance_id: `${agent_type}-1`, agent_type, mesh_id: 'mesh_test', connection_epoch: 1 };
      await insertAgent(this.api.database, { tenant_id: this.api.tenantId, ...agent });
    }
    this.#agents.set(agent_type, answers);
  }

  /** What the workflow of a plan is started with. */
  inputOf(plan_id: string): PlanInput {
    return { tenant_id: this.api.tenantId, plan_id, session_id: '' };
  }

  /** Creates a plan, and moves it. */
  async run(steps: Parameters<typeof createPlan>[1], more: Parameters<typeof createPlan>[2] = {}): Promise<Plan> {
    return this.move((await createPlan(this.api.client, steps, more)).plan_id);
  }

  /** Moves a plan as far as it goes by itself. @param laterMs so long after now, by the clock of its workflow */
  async move(plan_id: string, laterMs = 0): Promise<Plan> {
    const ref = this.inputOf(plan_id);
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const { start, cancel } = await advancePlan(this.api.db, ref, () => new Date(Date.now() + laterMs));
      for (const attempt of start) await this.activities.startStep(ref, attempt);
      for (const messageId of cancel) await this.activities.cancelStepMessage(ref, messageId);
      const answered = await this.#answerAll(plan_id);
      if (start.length + cancel.length + answered === 0) return readPlan(this.api.client, plan_id);
    }
    throw new Error(
      `the plan goes round in circles: ${JSON.stringify(stepStates(await readPlan(this.api.client, plan_id)))}`,
    );
  }

  /** One look of a message's workflow, so long after now. */
  look(message_id: string, laterMs: number): Promise<unknown> {
    return stepAndTake(
      this.api.core,
      { tenant_id: this.api.tenantId, message_id },
      { now: () => new Date(Date.now() + laterMs) },
    );
  }

  /** @returns how many messages of the plan were answered */
  async #answerAll(planId: string): Promise<number> {
    const asked = await this.api.database.query<{ message_id: string; type: string; text: string }>(
      `SELECT message_id, m.want_agent_type AS type, m.parts #>> '{0,text}' AS text FROM plan_messages p JOIN messages m USING (tenant_id, message_id)
        WHERE p.plan_id = $1 AND m.state IN ('submitted', 'working') ORDER BY p.place`,
      [planId],
    );
    let answered = 0;
    for (const { message_id, type, text } of asked) {
      const answer = this.#agents.get(type)?.(text, message_id);
      if (!answer) continue;
      await answerMessage(this.api, message_id, answer);
      answered += 1;
    }
    return answered;
  }

  /** The events of a session of these types, as they were written. */
  async events(session_id: string, type = 'plan.%'): Promise<Record<string, unknown>[]> {
    const rows = await this.api.database.query<{ event_type: string; payload: object }>(
      'SELECT event_type, payload FROM events WHERE session_id = $1 AND event_type LIKE $2 ORDER BY event_id',
      [session_id, type],
    );
    return rows.map(({ event_type, payload }) => ({ event_type, ...payload }));
  }
}
