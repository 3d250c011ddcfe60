import type { PlanStep } from '../../contracts/api/plans.js';

/** What a step waits for. `ids`: of the steps. */
export type StepWait =
  | { kind: 'steps'; ids: string[] }
  | { kind: 'person' | 'approval' | 'room' | 'attempt' | 'turn' | 'agent' };

const ROOM = ['RATE_LIMITED', 'QUOTA_EXCEEDED'];

/** What a step waits for; null where it is over, or an agent works on it. @param isRunning whether its plan is under way */
export function waitOf(step: PlanStep, steps: readonly PlanStep[], isRunning: boolean): StepWait | null {
  if (step.state === 'input-required') return { kind: 'person' };
  if (step.state === 'running') return step.worker ? null : { kind: 'agent' };
  if (step.state !== 'pending') return null;
  if (!isRunning) return { kind: 'approval' };
  const ids = step.depends_on.filter((id) => steps.find(({ step_id }) => step_id === id)?.state !== 'completed');
  if (ids.length > 0) return { kind: 'steps', ids };
  if (step.error) return { kind: ROOM.includes(step.error.code) ? 'room' : 'attempt' };
  return { kind: 'turn' };
}

/** A wait as a sentence. */
export function waitText(wait: StepWait): string {
  switch (wait.kind) {
    case 'steps':
      return `Waits for ${wait.ids.join(', ')}`;
    case 'person':
      return 'Waits for a person';
    case 'approval':
      return 'Waits for the approval of the plan';
    case 'room':
      return 'Waits for room';
    case 'attempt':
      return 'Waits for the next attempt';
    case 'turn':
      return 'Waits for its turn';
    case 'agent':
      return 'Waits for an agent';
    default:
      return wait satisfies never;
  }
}
