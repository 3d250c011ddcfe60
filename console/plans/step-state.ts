import type { StepState } from '../../contracts/api/plans.js';

const SHOWN: Record<StepState, [tone: string, sign: string]> = {
  pending: ['', '○'],
  running: ['busy', '▸'],
  'input-required': ['wait', '?'],
  completed: ['good', '✓'],
  failed: ['bad', '✕'],
  skipped: ['', '–'],
};

/** The tone of a step's colours. */
export const toneOf = (state: StepState): string => SHOWN[state][0];

/** A sign for a step's state, where a word has no room. */
export const signOf = (state: StepState): string => SHOWN[state][1];
