import fc from 'fast-check';
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
export function runStep<World>(actions: Actions<World>, world: World, [name, args]: Step): Promise<unknown> {
  const action = actions[name];
  if (!action) throw new Error(`there is no action ${name}`);
  return action.run(world, args);
}

/** Expects whatever the model checks to hold in every script. */
export async function expectModel<World>(model: Model<World>): Promise<void> {
  const { actions, attempt = (_world, step) => step(), runs, examples = [] } = model;
  const property = async (script: Script) => {
    const world = await model.begin();
    for (const moment of script) {
      const steps = moment.map((step) => attempt(world, () => runStep(actions, world, step)));
      const defect = (await Promise.allSettled(steps)).find((result) => result.status === 'rejected');
      if (defect) throw defect.reason;
      await model.check(world);
    }
    await model.end(world);
  };
  await expectScripts(scriptsOf(actions, model), property, { runs, examples });
}

/**
 * Expects a property of real time and real servers to hold for every script. What failed first is what counts: a smaller script may fail for
 * another reason, or not at all. @throws an Error whose first line says why, with the seed and the script after it
 */
export async function expectScripts(
  scripts: fc.Arbitrary<Script>,
  property: (script: Script) => Promise<void>,
  { runs, examples = [] }: { runs: number; examples?: Script[] },
): Promise<void> {
  const given = examples.map((script): [Script] => [script]);
  const options = { numRuns: runs + given.length, seed: SEED, examples: given, endOnFailure: true };
  const found = await fc.check(fc.asyncProperty(scripts, property), options);
  if (!found.failed) return;
  const { counterexample, errorInstance: cause, numRuns } = found;
  const reason = cause instanceof Error ? cause.message : String(cause);
  const moments = (counterexample?.[0] ?? []).map((moment) =>
    moment.map(([name, args]) => `${name} ${fc.stringify(args)}`).join(' | '),
  );
  throw new Error(`${reason}\nin run ${numRuns} of TEST_SEED=${SEED}, with\n${moments.join('\n')}`, { cause });
}

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
