import { z } from 'zod';
import type { Skills } from '../../contracts/agents.js';
import type { AgentTask, Answer, Output, TaskResult } from './agent-task.js';

/** Answers a message. What it throws becomes `HANDLER_ERROR`. */
export type MessageHandler = (task: AgentTask) => Answer;
/** Answers a message to a skill. `input`: what the skill's schema read from the caller's `args`, or else the message's data. */
export type SkillHandler<Input> = (task: AgentTask, input: Input) => Answer;

/** A skill as the agent card tells of it. */
export interface SkillOptions<Schema extends z.ZodType = z.ZodType> {
  id: string;
  /** The id by default. */
  name?: string;
  description?: string;
  tags?: string[];
  examples?: string[];
  /** Reads the caller's `args`, or else the message's first data part, or else `{}`. What does not fit fails with `INVALID_DISPATCH`. */
  input?: Schema;
}

type Runner = (task: AgentTask) => Answer;

/** What an agent does: a handler for messages, and one for each skill. */
export class Handlers {
  readonly skills: z.infer<typeof Skills> = [];
  readonly #bySkill = new Map<string, Runner>();
  #onMessage: Runner | null = null;

  onMessage(handler: MessageHandler): void {
    if (this.#onMessage) throw new Error('onMessage was given already');
    this.#onMessage = handler;
  }

  addSkill<Schema extends z.ZodType>(skill: SkillOptions<Schema>, handler: SkillHandler<z.output<Schema>>): void {
    const { input, ...card } = skill;
    if (this.#bySkill.has(skill.id)) throw new Error(`the skill ${skill.id} was given already`);
    this.skills.push({ name: skill.id, description: '', tags: [], ...card });
    this.#bySkill.set(skill.id, (task) => {
      const read = (input ?? z.unknown()).safeParse(inputOf(task));
      if (read.success) return handler(task, read.data as z.output<Schema>);
      return { state: 'failed', code: 'INVALID_DISPATCH', message: z.prettifyError(read.error) };
    });
  }

  /** Runs the handler of a task to its end; pieces of a generator are streamed. */
  async run(task: AgentTask): Promise<TaskResult> {
    const runner = task.skillId === undefined ? this.#onMessage : (this.#bySkill.get(task.skillId) ?? this.#onMessage);
    if (!runner) return { state: 'failed', code: 'INVALID_DISPATCH', message: nobodyFor(task) };
    const answer = await runner(task);
    const result = isGenerator(answer) ? await pour(answer, task) : answer;
    return result as TaskResult;
  }
}

function nobodyFor({ skillId }: AgentTask): string {
  return skillId === undefined ? 'this agent takes no messages without a skill' : `this agent has no skill ${skillId}`;
}

function inputOf(task: AgentTask): unknown {
  return task.args ?? task.parts.find((part) => part.kind === 'data')?.data ?? {};
}

function isGenerator(answer: unknown): answer is AsyncGenerator<Output, TaskResult, void> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer;
}

/** Streams what a generator yields. When the task is aborted the generator ends too, at its next `yield`. */
async function pour(pieces: AsyncGenerator<Output, TaskResult, void>, task: AgentTask): Promise<TaskResult> {
  let giveUp: (reason: unknown) => void = () => undefined;
  const onAbort = () => giveUp(task.signal.reason);
  task.signal.addEventListener('abort', onAbort, { once: true });
  const next = () =>
    new Promise<IteratorResult<Output, TaskResult>>((resolve, reject) => {
      giveUp = reject;
      pieces.next().then(resolve, reject);
    });
  try {
    for (let step = await next(); ; step = await next()) {
      if (step.done) return step.value;
      task.signal.throwIfAborted();
      await task.stream(step.value);
    }
  } catch (error) {
    void pieces.return(undefined).catch(() => undefined); // its clean-up; the failure itself is told below
    throw error;
  } finally {
    task.signal.removeEventListener('abort', onAbort);
  }
}
