import { z } from 'zod';
import type { Skills } from '../../contracts/agents.js';
import type { AgentTask, Answer, Failed, Output, OutputSource } from './agent-task.js';
import { isSource, piecesOf } from './output-source.js';
import type { HandlerRun } from './run-handler.js';

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

  /** Runs the handler of a task to its end; the pieces of a source are streamed. */
  run(task: AgentTask): HandlerRun {
    const ofSkill = task.skillId === undefined ? undefined : this.#bySkill.get(task.skillId);
    const runner = ofSkill ?? this.#onMessage ?? (() => nobodyFor(task));
    return { handler: ofSkill ? `skill ${task.skillId}` : 'onMessage', result: resultOf(runner, task) };
  }
}

async function resultOf(runner: Runner, task: AgentTask): Promise<unknown> {
  const answer = await runner(task);
  return isSource(answer) ? pour(answer, task) : answer;
}

function nobodyFor({ skillId }: AgentTask): Failed {
  const message =
    skillId === undefined ? 'this agent takes no messages without a skill' : `this agent has no skill ${skillId}`;
  return { state: 'failed', code: 'INVALID_DISPATCH', message };
}

function inputOf(task: AgentTask): unknown {
  return task.args ?? task.parts.find((part) => part.kind === 'data')?.data ?? {};
}

/** Streams what a source gives. When the task is aborted the source is ended too, a generator at its next `yield`. */
async function pour(source: OutputSource, task: AgentTask): Promise<unknown> {
  const pieces = piecesOf(source)[Symbol.asyncIterator]();
  let giveUp: (reason: unknown) => void = () => undefined;
  const onAbort = () => giveUp(task.signal.reason);
  task.signal.addEventListener('abort', onAbort, { once: true });
  const next = () =>
    new Promise<IteratorResult<Output, unknown>>((resolve, reject) => {
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
    void pieces.return?.(undefined).catch(() => undefined); // its clean-up; the failure itself is told below
    throw error;
  } finally {
    task.signal.removeEventListener('abort', onAbort);
  }
}
