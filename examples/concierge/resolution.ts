import type { TaskResolution } from '../../sdk/agent/index.js';

const REFUSALS = ['declined', 'rejected', 'deny', 'reject'];

/** Whether the human said no. */
export function isRefusal({ resolution }: TaskResolution): boolean {
  const word = typeof resolution === 'string' ? resolution : resolution.decision;
  return typeof word === 'string' && REFUSALS.includes(word);
}

export function refusalText({ comment }: TaskResolution): string {
  return `As you wish: I did nothing.${comment ? ` (You said: ${comment})` : ''}`;
}

/** What was filled in: beside the word of the resolution, or the resolution itself. */
export function resolutionData({ resolution, data }: TaskResolution): Record<string, unknown> {
  return data ?? (typeof resolution === 'string' ? {} : resolution);
}
