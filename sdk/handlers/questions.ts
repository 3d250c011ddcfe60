import { z } from 'zod';
import { checked, jsonSchemaOf } from '../schema/schema.js';
import type { StandardSchema } from '../schema/standard-schema.js';
import { fromWire } from '../wire/names.js';
import type { Ask, FormQuestion, InputRequired, Question, TaskResolution } from './agent-task.js';

/** The resolutions that count as agreement, of the five that the platform sends. */
const ACCEPTED: readonly unknown[] = ['approved', 'confirmed', 'submitted'];

/** An answer as a dispatch carries it. */
const Listed = z.object({
  request_id: z.string(),
  resolution: z.string(),
  data: z.record(z.string(), z.unknown()).optional(),
  comment: z.string().optional(),
  arguments: z.record(z.string(), z.unknown()).optional(),
  source: z.string().default('agent'),
  kind: z.string().optional(),
  title: z.string().optional(),
});

function resolutionOf(value: unknown): TaskResolution[] {
  const { data: listed } = Listed.safeParse(value);
  if (!listed) return [];
  const resolution = fromWire<Omit<TaskResolution, 'accepted'>>(listed, { data: true, arguments: true });
  return [{ ...resolution, accepted: ACCEPTED.includes(resolution.resolution) }];
}

/** Every answer that a dispatch carries, the oldest first. Platforms of before there were several send one, `resolution`. */
function resolutionsIn(metadata: Readonly<Record<string, unknown>> | undefined): TaskResolution[] {
  const { resolutions, resolution } = metadata ?? {};
  return (Array.isArray(resolutions) ? resolutions : [resolution]).flatMap(resolutionOf);
}

type AnyQuestion = Question | FormQuestion<StandardSchema>;

/** The JSON Schema of a form, and what is wrong with the values that a human filled in; null where they fit. */
interface Form {
  schema?: Record<string, unknown>;
  read(data: unknown): Promise<{ data: unknown; problem: string | null }>;
}

function formOf({ schema }: AnyQuestion): Form {
  // The platform checks the answers to a plain JSON Schema.
  if (!schema || !('~standard' in schema)) {
    return { ...(schema && { schema }), read: async (data) => ({ data, problem: null }) };
  }
  return {
    schema: jsonSchemaOf(schema),
    read: async (values) => {
      const { value: data, problem } = await checked(schema as StandardSchema, values ?? {});
      return { data, problem };
    },
  };
}

/**
 * The questions of one run of a handler. A question that was answered in an earlier run gets its answer; the first other one ends the run, and
 * the handler runs again when a human has answered it.
 */
export class Questions {
  /** Every answer that the dispatch carries, the oldest first. */
  readonly resolutions: readonly TaskResolution[];
  /** The question that ends this run. */
  readonly asked: Promise<InputRequired>;
  readonly #unused: TaskResolution[];
  /** Questions that were neither awaited nor returned yet. */
  readonly #ignored = new Set<Question>();
  readonly #replayed = new WeakMap<TaskResolution, InputRequired>();
  #end: (question: InputRequired) => void = () => undefined;

  constructor(metadata: Readonly<Record<string, unknown>> | undefined) {
    this.resolutions = resolutionsIn(metadata);
    this.#unused = this.resolutions.filter(({ source }) => source === 'agent');
    this.asked = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** The answer to the question that this agent asked last. */
  get latest(): TaskResolution | undefined {
    return this.resolutions.findLast(({ source }) => source === 'agent');
  }

  /** `then` is not enumerable, so that a copy of the result, `{ ...task.ask({…}), usage }`, is the plain result. */
  ask(question: AnyQuestion): Ask<TaskResolution> {
    const form = formOf(question ?? {});
    const asked: Question = { ...question, ...(form.schema && { schema: form.schema }) } as Question;
    let answer: Promise<TaskResolution> | undefined;
    this.#ignored.add(asked);
    return Object.defineProperty({ ...resultFor(asked) }, 'then', {
      value: (...handlers: Parameters<PromiseLike<TaskResolution>['then']>) => {
        this.#ignored.delete(asked);
        answer ??= this.#answerTo(asked, form);
        return answer.then(...handlers);
      },
    }) as Ask<TaskResolution>;
  }

  /**
   * What a handler returned. `return task.ask({…})` gives an answer where the question was answered before: then it is asked again.
   * @throws an Error for a question that was neither awaited nor returned: the handler went on as if somebody had agreed
   */
  resultOf(returned: unknown): unknown {
    const result = this.#replayed.get(returned as TaskResolution) ?? returned;
    this.#ignored.delete((result as Partial<InputRequired> | undefined)?.question as Question); // of a copy
    const [ignored] = this.#ignored;
    if (!ignored) return result;
    throw new Error(
      `nobody was asked “${ignored.title}”, because the question was neither awaited nor returned: write await task.ask({…}) or return task.ask({…})`,
    );
  }

  /** The next answer to this question; never settles where there is none, so that nothing after `await task.ask(…)` runs. */
  async #answerTo(asked: Question, form: Form): Promise<TaskResolution> {
    let question = asked;
    for (;;) {
      const index = this.#unused.findIndex((one) => isAnswerTo(one, asked));
      const [found] = index < 0 ? [] : this.#unused.splice(index, 1);
      if (!found) {
        this.#end(resultFor(question));
        return new Promise(() => undefined);
      }
      const { data, problem } = found.accepted ? await form.read(found.data) : { data: found.data, problem: null };
      if (problem === null) {
        const answer = { ...found, ...(data !== undefined && { data }) } as TaskResolution;
        this.#replayed.set(answer, resultFor(asked));
        return answer;
      }
      question = { ...asked, prompt: `${asked.prompt}\n\nThe values did not fit. ${problem}` };
    }
  }
}

function resultFor(question: Question): InputRequired {
  return { state: 'input-required', question };
}

/** Questions are known by kind and title; a platform that does not name them sent one answer alone. */
function isAnswerTo({ kind, title }: TaskResolution, question: Question): boolean {
  return (kind ?? question.kind) === question.kind && (title ?? question.title) === question.title;
}
