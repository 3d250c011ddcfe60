import type { z } from 'zod';
import type { Skills } from '../../contracts/api/agents.js';
import { namesOf, requireKnownOptions } from '../known-options.js';
import { type InputSchema, requireUsable, type SchemaOutput } from '../schema/schema.js';
import type { AgentTask, Answer, Failed, Output } from './agent-task.js';
import {
  answerOfModel,
  chunksOfModel,
  chunksOfModelStream,
  isModelResult,
  isModelStream,
  isStreamedModelResult,
} from './model-result.js';
import { chunksOf, isSource } from './output-source.js';
import type { HandlerRun } from './run-dispatch.js';

/** Answers a message. An error that it throws fails the message with `HANDLER_ERROR`. */
export type MessageHandler = (task: AgentTask) => Answer;
/** Answers a message to a skill. `input` is the caller's `args`, or else the message's first data part, parsed by the skill's schema. */
export type SkillHandler<Input> = (task: AgentTask, input: Input) => Answer;

/** A skill, as the agent card lists it. */
export interface SkillOptions<Schema extends InputSchema = InputSchema> {
  id: string;
  /** The id by default. */
  name?: string;
  description?: string;
  tags?: string[];
  examples?: string[];
  /**
   * The handler may run twice for one message: if its agent is lost, the message is dispatched again, to it or another, with the same
   * `task.idempotencyKey`. By default it fails with `AGENT_DISCONNECTED`.
   */
  idempotent?: boolean;
  /** Parses the caller's `args`, or else the message's first data part, or else `{}`. Invalid input fails the message with `INVALID_DISPATCH`. */
  input?: Schema;
}

const SKILL_OPTIONS = namesOf<SkillOptions>({
  id: true,
  name: true,
  description: true,
  tags: true,
  examples: true,
  idempotent: true,
  input: true,
});

/** @throws TypeError for what is no function, when it is given rather than with the first message */
export function requireHandler(call: string, handler: unknown): void {
  if (typeof handler !== 'function') throw new TypeError(`${call}: the handler is not a function`);
}

type RunHandler = (task: AgentTask) => Answer;

/** The handlers of an agent: one for messages, and one for each skill. */
export class Handlers {
  readonly skills: z.infer<typeof Skills> = [];
  /** Ids of the skills whose messages may be dispatched again. */
  readonly idempotentSkills: string[] = [];
  readonly #bySkill = new Map<string, RunHandler>();
  #onMessage: RunHandler | null = null;

  onMessage(handler: MessageHandler): void {
    requireHandler('onMessage(handler)', handler);
    if (this.#onMessage) throw new Error('onMessage is already set');
    this.#onMessage = handler;
  }

  addSkill<Schema extends InputSchema>(skill: SkillOptions<Schema>, handler: SkillHandler<SchemaOutput<Schema>>): void {
    requireKnownOptions('a skill', skill, SKILL_OPTIONS);
    requireHandler(`skill('${skill.id}', handler)`, handler);
    const { input, idempotent, ...card } = skill;
    if (this.#bySkill.has(skill.id)) throw new Error(`the skill ${skill.id} is already defined`);
    if (input) requireUsable(input);
    if (idempotent) this.idempotentSkills.push(skill.id);
    this.skills.push({ name: skill.id, description: '', tags: [], ...card });
    this.#bySkill.set(skill.id, async (task) => {
      const given = await (input ? task.data(input) : task.data());
      return handler(task, given as SchemaOutput<Schema>);
    });
  }

  /** The handler of a task; the chunks of a source are streamed. */
  run(task: AgentTask): HandlerRun {
    const skillHandler = task.skillId === undefined ? undefined : this.#bySkill.get(task.skillId);
    const handler = skillHandler ?? this.#onMessage ?? (() => noHandler(task));
    return { handler: skillHandler ? `skill ${task.skillId}` : 'onMessage', result: () => resultOf(handler, task) };
  }
}

async function resultOf(handler: RunHandler, task: AgentTask): Promise<unknown> {
  const answer = await handler(task);
  if (isSource(answer)) return streamAll(chunksOf(answer), task);
  if (isModelStream(answer)) return streamAll(chunksOfModelStream(answer, task), task);
  if (isStreamedModelResult(answer)) return streamAll(chunksOfModel(answer, chunksOf(answer.textStream)), task);
  return isModelResult(answer) ? answerOfModel(answer) : answer;
}

function noHandler({ skillId }: AgentTask): Failed {
  const message =
    skillId === undefined ? 'this agent accepts no messages without a skill' : `this agent has no skill ${skillId}`;
  return { state: 'failed', code: 'INVALID_DISPATCH', message };
}

/** Streams the chunks of a source. When the task is aborted the source is closed too; a generator ends at its next `yield`. */
async function streamAll(source: AsyncIterable<Output>, task: AgentTask): Promise<unknown> {
  const chunks = source[Symbol.asyncIterator]();
  let rejectNext: (reason: unknown) => void = () => undefined;
  const onAbort = () => rejectNext(task.signal.reason);
  task.signal.addEventListener('abort', onAbort, { once: true });
  const next = () =>
    new Promise<IteratorResult<Output, unknown>>((resolve, reject) => {
      rejectNext = reject;
      chunks.next().then(resolve, reject);
    });
  try {
    for (let step = await next(); ; step = await next()) {
      if (step.done) return step.value;
      task.signal.throwIfAborted();
      await task.stream(step.value);
    }
  } catch (error) {
    void chunks.return?.(undefined).catch(() => undefined); // the generator's own clean-up; the failure is thrown below
    throw error;
  } finally {
    task.signal.removeEventListener('abort', onAbort);
  }
}
