import type { StepState } from '../../contracts/api/plans.js';

/** An error of a step, or of a plan. */
export interface PlanError {
  code: string;
  message: string;
}

/** What decides about a step: its row, and the message of its newest attempt. */
export interface StepFacts {
  place: number;
  state: StepState;
  depends_on: readonly number[];
  attempts: number;
  max_attempts: number;
  /** Of a pending step: no attempt before. */
  retry_at: Date | null;
  /** The end of its time; null without a limit, before it starts, and while the clock stands. */
  due_at: Date | null;
  /** What was left of its time when the clock stopped. */
  time_left_ms: number | null;
  error: PlanError | null;
  /** Null before the first attempt. */
  message: { state: string; error: PlanError | null } | null;
}

/** How a plan ends. */
export type PlanEnd = { state: 'completed' } | { state: 'failed'; failed_step: number; error: PlanError };

/** What is to be done now. */
export interface Moves {
  /** The steps that change, as they are afterwards. */
  changed: StepFacts[];
  /** Places of the steps whose next attempt starts. */
  start: number[];
  /** Null: the plan goes on. */
  end: PlanEnd | null;
  /** When to decide again if nothing happens; null: only when something happens. */
  next_at: Date | null;
}

/** A human or a rule has said no: another attempt would only ask again. */
const FINAL_ERRORS = new Set(['POLICY_DENIED', 'GUARD_DENIED', 'APPROVAL_REJECTED', 'APPROVAL_EXPIRED', 'CANCELED']);

const PAUSE_FIRST_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/** The pause before the next attempt of a step. @param attempts that have failed */
export function pauseMs(attempts: number): number {
  return Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** Math.min(10, attempts - 1));
}

const later = (from: Date, ms: number) => new Date(from.getTime() + ms);
const isDue = (at: Date | null, now: Date) => at !== null && at.getTime() <= now.getTime();
const isUnderWay = ({ state }: StepFacts) => state === 'running' || state === 'input-required';
const hasEnded = ({ state }: StepFacts) => state === 'completed' || state === 'failed' || state === 'skipped';

/** A step that has failed. */
export function failedStep(step: StepFacts, error: PlanError): StepFacts {
  return { ...step, state: 'failed', retry_at: null, due_at: null, time_left_ms: null, error };
}

function afterFailure(step: StepFacts, error: PlanError, now: Date): StepFacts {
  if (FINAL_ERRORS.has(error.code) || step.attempts >= step.max_attempts) return failedStep(step, error);
  return { ...step, state: 'pending', retry_at: later(now, pauseMs(step.attempts)), error };
}

/** The clock of a step stands while it waits for a human. */
function waiting(step: StepFacts, now: Date): StepFacts {
  if (step.state === 'input-required') return step;
  const left = step.due_at && Math.max(0, step.due_at.getTime() - now.getTime());
  return { ...step, state: 'input-required', due_at: null, time_left_ms: left };
}

function working(step: StepFacts, now: Date): StepFacts {
  if (step.state === 'running') return step;
  const due_at = step.time_left_ms === null ? step.due_at : later(now, step.time_left_ms);
  return { ...step, state: 'running', due_at, time_left_ms: null };
}

/** A step that is under way, after what has become of its message. */
function afterMessage(step: StepFacts, now: Date): StepFacts {
  if (!isUnderWay(step) || step.message === null) return step;
  const { state, error } = step.message;
  switch (state) {
    case 'completed':
      return { ...step, state: 'completed', due_at: null, time_left_ms: null, error: null };
    case 'failed':
      return afterFailure(step, error ?? { code: 'INTERNAL', message: 'The message failed.' }, now);
    case 'canceled':
      return failedStep(step, { code: 'CANCELED', message: 'The message of the step was canceled.' });
    case 'input-required':
      return waiting(step, now);
    default:
      return working(step, now);
  }
}

function afterTime(step: StepFacts, now: Date): StepFacts {
  if (hasEnded(step) || !isDue(step.due_at, now)) return step;
  const before = step.error ? ` Its last error: ${step.error.code}.` : '';
  return failedStep(step, { code: 'DEADLINE_EXCEEDED', message: `The step did not complete in time.${before}` });
}

/** The steps after what has become of their messages, and of their time. */
export function observed(steps: readonly StepFacts[], now: Date): StepFacts[] {
  return steps.map((step) => afterTime(afterMessage(step, now), now));
}

/** Skips the pending steps that depend on one that failed or is skipped, also through others. */
function withSkipped(steps: StepFacts[]): StepFacts[] {
  const lost = new Set(
    steps.filter(({ state }) => state === 'failed' || state === 'skipped').map(({ place }) => place),
  );
  for (let before = -1; before !== lost.size; ) {
    before = lost.size;
    for (const { place, state, depends_on } of steps)
      if (state === 'pending' && depends_on.some((other) => lost.has(other))) lost.add(place);
  }
  return steps.map((step) =>
    step.state === 'pending' && lost.has(step.place)
      ? { ...step, state: 'skipped', retry_at: null, due_at: null }
      : step,
  );
}

/** The end of a plan whose steps have all ended. */
function endOf(steps: readonly StepFacts[]): PlanEnd {
  const failed = steps.find(({ state }) => state === 'failed');
  if (!failed) return { state: 'completed' };
  const error = failed.error ?? { code: 'INTERNAL', message: 'The step failed.' };
  return { state: 'failed', failed_step: failed.place, error };
}

/** The pending steps that may start: all that they depend on is completed, and there is room. */
function startable(steps: readonly StepFacts[], maxParallel: number, now: Date): number[] {
  const completed = new Set(steps.filter(({ state }) => state === 'completed').map(({ place }) => place));
  const room = maxParallel - steps.filter(isUnderWay).length;
  const ready = steps.filter(
    ({ state, retry_at, depends_on }) =>
      state === 'pending' &&
      (retry_at === null || isDue(retry_at, now)) &&
      depends_on.every((place) => completed.has(place)),
  );
  return ready.slice(0, Math.max(0, room)).map(({ place }) => place);
}

function earliest(times: (Date | null)[]): Date | null {
  const known = times.filter((time) => time !== null).map((time) => time.getTime());
  return known.length > 0 ? new Date(Math.min(...known)) : null;
}

/**
 * Decides how a running plan goes on. Independent steps go on when one fails; the plan ends when all steps have ended.
 * @param steps in the order of their places
 */
export function nextMoves(steps: readonly StepFacts[], maxParallel: number, now: Date): Moves {
  const after = withSkipped(observed(steps, now));
  const changed = after.filter((step, index) => step !== steps[index]);
  if (after.every(hasEnded)) return { changed, start: [], end: endOf(after), next_at: null };
  const start = startable(after, maxParallel, now);
  const times = after
    .filter((step) => !hasEnded(step))
    .flatMap((step) => [step.due_at, isDue(step.retry_at, now) ? null : step.retry_at]);
  return { changed, start, end: null, next_at: earliest(times) };
}
