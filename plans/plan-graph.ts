import type { Part } from '../contracts/a2a/parts.js';
import type { NewStep, PlanProposal } from '../contracts/api/plans.js';
import { PlatformError } from '../runtime/errors.js';
import { referencesIn } from './steps/templates.js';

export interface NewPlan extends PlanProposal {
  session_id: string;
  auto_approve: boolean;
  /** What an agent proposed it with; a repeat gives the same plan. */
  proposal_key?: string;
  traceparent?: string;
  /** The network address of the caller. */
  ip?: string;
}

/** A step of a new plan: with its id, its message as parts, and the places of the steps that it waits for. */
export type GraphStep = Omit<NewStep, 'step_id' | 'message' | 'depends_on'> & {
  step_id: string;
  parts: Part[];
  /** Rising, without repeats. */
  depends_on: number[];
};

function invalid(place: number, member: string, problem: string): PlatformError {
  return new PlatformError('BAD_REQUEST', `steps.${place}.${member}: ${problem}`);
}

/** The places of the steps by their ids. @throws PlatformError BAD_REQUEST when two have the same id */
function placesOf(ids: readonly string[]): Map<string, number> {
  const places = new Map<string, number>();
  for (const [place, id] of ids.entries()) {
    if (places.has(id)) throw invalid(place, 'step_id', `another step has the id ${id}`);
    places.set(id, place);
  }
  return places;
}

function dependenciesOf(step: NewStep, parts: Part[], place: number, places: ReadonlyMap<string, number>): number[] {
  const { uses, invalid: unknown } = referencesIn(parts);
  if (unknown[0] !== undefined) throw invalid(place, 'message', `${unknown[0]} is not of the form {{steps.ID.output}}`);
  const find = (member: string) => (id: string) => {
    const found = places.get(id);
    if (found === undefined) throw invalid(place, member, `there is no step ${id}`);
    return found;
  };
  const named = [...step.depends_on.map(find('depends_on')), ...[...uses.keys()].map(find('message'))];
  return [...new Set(named)].sort((one, other) => one - other);
}

/** A place that the steps cannot come to because it waits for itself, directly or through others; undefined where there is none. */
function placeInCycle(dependencies: readonly (readonly number[])[]): number | undefined {
  const waitsFor = dependencies.map(({ length }) => length);
  const dependents = dependencies.map((): number[] => []);
  for (const [place, of] of dependencies.entries()) for (const other of of) dependents[other]?.push(place);
  const ready = [...waitsFor.keys()].filter((place) => waitsFor[place] === 0);
  let reached = 0;
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    reached += 1;
    for (const place of dependents[next] ?? []) {
      const left = (waitsFor[place] ?? 0) - 1;
      waitsFor[place] = left;
      if (left === 0) ready.push(place);
    }
  }
  return reached === dependencies.length ? undefined : waitsFor.findIndex((left) => left > 0);
}

/**
 * Checks the steps of a new plan and resolves their references.
 * @throws PlatformError BAD_REQUEST for an id that is used twice, a reference to a step that does not exist, and a cycle
 */
export function graphOf(steps: readonly NewStep[]): GraphStep[] {
  const ids = steps.map((step, place) => step.step_id ?? `step_${place + 1}`);
  const places = placesOf(ids);
  const graph = steps.map((step, place) => {
    const { message, ...rest } = step;
    const parts: Part[] = typeof message === 'string' ? [{ kind: 'text', text: message }] : message;
    return { ...rest, step_id: ids[place] ?? '', parts, depends_on: dependenciesOf(step, parts, place, places) };
  });
  const cyclic = placeInCycle(graph.map(({ depends_on }) => depends_on));
  if (cyclic !== undefined) throw invalid(cyclic, 'depends_on', `the step ${ids[cyclic]} waits for itself`);
  return graph;
}
