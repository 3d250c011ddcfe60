import type { TaskResolution } from '../../sdk/index.js';

export function refusalText({ comment }: TaskResolution): string {
  return `As you wish: I did nothing.${comment ? ` (You said: ${comment})` : ''}`;
}
