import fc from 'fast-check';
import pLimit from 'p-limit';
import { expect } from 'vitest';
import { SEED } from './seed.js';

/** Something that may happen to a world, with the arguments that chance gives it. */
export interface Action<World, Args> {
  args: fc.Arbitrary<Args>;
  run(world: World, args: Args): Promise<unknown>;
}
/** Actions by their names. Each has arguments of a type of its own. */
// biome-ignore lint/suspicious/noExplicitAny: only the action itself knows the type of its arguments
export type Actions<World> = Record<string, Action<World, any>>;

/** One action with its arguments. */
export type Step = readonly [name: string, args: unknown];
/** Moments, one after the other; the steps of a moment happen at the same time. */
export type Script = readonly (readonly Step[])[];

interface ScriptShape {
  /** How often an action is chosen beside the others; once where nothing is said, never with 0. */
  weights?: Record<string, number>;
  moments: [least: number, most: number];
  /** So many steps happen at the same time at most. */
  atOnce: number;
}

export interface Model<World> extends ScriptShape {
  actions: Actions<World>;
  runs: number;
  /** Tried before the random scripts. */
  examples?: Script[];
  begin(): Promise<World>;
  /** Does a step; it may forgive a refusal. By default every error is a defect. */
  attempt?(world: World, step: () => Promise<unknown>): Promise<unknown>;
  /** After each moment. */
  check(world: World): Promise<void>;
  end(world: World): Promise<void>;
}

/**
 * An action whose arguments are numbers: to which of the things that there are, modulo their number, and which of its variants.
 * @param targets few: the first of many things are what most actions are about
 */
export function numbered<World>(
  work: (world: World, target: number, variant: number) => Promise<unknown>,
  targets = 4,
): Action<World, [target: number, variant: number]> {
  return {
    args: fc.tuple(fc.nat(targets - 1), fc.nat(11)),
    run: (world, [target, variant]) => work(world, target, variant),
  };
}

/** Random scripts of these actions. */
export function scriptsOf<World>(actions: Actions<World>, shape: ScriptShape): fc.Arbitrary<Script> {
  const steps = Object.entries(actions).map(([name, { args }]) => ({
    weight: shape.weights?.[name] ?? 1,
    arbitrary: fc.tuple(fc.constant(name), args) as fc.Arbitrary<Step>,
  }));
  const moment = fc.array(fc.oneof(...steps), { minLength: 1, maxLength: shape.atOnce });
  const [minLength, maxLength] = shape.moments;
  return fc.array(moment, { minLength, maxLength, size: 'max' });
}

/** Does a step of a script. */
function runStep<World>(actions: Actions<World>, world: World, [name, args]: Step): Promise<unknown> {
  const action = actions[name];
  if (!action) throw new Error(`there is no action ${name}`);
  return action.run(world, args);
}

/** Expects whatever the model checks to hold in every script. */
export async function expectModel<World>(model: Model<World>): Promise<void> {
  const { actions, runs, examples = [] } = model;
  await expectScripts(scriptsOf(actions, model), scriptRunner(model), { runs, examples });
}

/** Runs a script in a world of its own. @throws what the model's checks, or a step, say against it */
export function scriptRunner<World>(
  model: Omit<Model<World>, 'runs' | keyof ScriptShape>,
): (script: Script) => Promise<void> {
  const { actions, attempt = (_world, step) => step() } = model;
  return async (script: Script) => {
    const world = await model.begin();
    for (const moment of script) {
      const steps = moment.map((step) => attempt(world, () => runStep(actions, world, step)));
      const defect = (await Promise.allSettled(steps)).find((result) => result.status === 'rejected');
      if (defect) throw defect.reason;
      await model.check(world);
    }
    await model.end(world);
  };
}

/**
 * Expects a property of real time and real servers to hold for every script. What failed first is what counts: a smaller script may fail for
 * another reason, or not at all. @throws an Error whose first line says why, with the seed and the script after it
 */
async function expectScripts(
  scripts: fc.Arbitrary<Script>,
  property: (script: Script) => Promise<void>,
  { runs, examples = [] }: { runs: number; examples?: Script[] },
): Promise<void> {
  const given = examples.map((script): [Script] => [script]);
  const options = { numRuns: runs + given.length, seed: SEED, examples: given, endOnFailure: true };
  const found = await fc.check(fc.asyncProperty(scripts, property), options);
  if (!found.failed) return;
  const { counterexample, errorInstance: cause, numRuns } = found;
  const script = counterexample?.[0] ?? [];
  throw new Error(`${reasonOf(cause)}\nin run ${numRuns} of TEST_SEED=${SEED}, with\n${textOf(script)}`, { cause });
}

/** How long a failure may take to become smaller. */
const SHRINK_MS = 60_000;
/** How often it runs again alone: what fails by its timing may not do so each time. */
const TRIES = 3;

/**
 * The same for scripts that several of run side by side. The first that fails is run again alone, with smaller ones, for a minute: the smallest that
 * fails is shown beside it. @throws an Error whose first line says why, with the seed and the scripts after it
 */
export async function expectScriptsAtOnce(
  scripts: fc.Arbitrary<Script>,
  property: (script: Script) => Promise<void>,
  { runs, atOnce }: { runs: number; atOnce: number },
): Promise<void> {
  const all = fc.sample(scripts, { numRuns: runs, seed: SEED });
  const limit = pLimit(atOnce);
  let failure: { run: number; script: Script; cause: unknown } | undefined;
  const attempt = async (script: Script, run: number) => {
    if (!failure) await property(script).catch((cause: unknown) => (failure ??= { run, script, cause }));
  };
  await Promise.all(all.map((script, run) => limit(() => attempt(script, run))));
  if (!failure) return;
  const { run, script, cause } = failure;
  const replay = { seed: SEED, path: `${run}`, numRuns: 1, interruptAfterTimeLimit: SHRINK_MS };
  let found = await fc.check(fc.asyncProperty(scripts, property), replay);
  for (let tries = 1; !found.failed && tries < TRIES; tries += 1)
    found = await fc.check(fc.asyncProperty(scripts, property), replay);
  const { counterexample, errorInstance } = found;
  const alone = counterexample
    ? `alone, ${reasonOf(errorInstance)}, with\n${textOf(counterexample[0])}`
    : `alone it did not fail in ${TRIES} runs`;
  const text = `${reasonOf(cause)}\nin run ${run} of TEST_SEED=${SEED}, with\n${textOf(script)}\n${alone}`;
  throw new Error(text, { cause });
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
const textOf = (script: Script): string =>
  script.map((moment) => moment.map(([name, args]) => `${name} ${fc.stringify(args)}`).join(' | ')).join('\n');

/** What has happened in all runs: a property of what never takes place would hold too. */
export class Seen {
  readonly #counts = new Map<string, number>();

  note(what: string, happened: unknown = true): void {
    if (happened) this.#counts.set(what, this.of(what) + 1);
  }

  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  expectAll(...whats: string[]): void {
    expect(whats.filter((what) => this.of(what) === 0)).toEqual([]);
  }
}
