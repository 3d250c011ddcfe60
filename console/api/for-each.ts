import { ApiError } from './call.js';

/** Calls under way at once. */
const TOGETHER = 4;

/** Does the work for each, a few at a time. @returns the codes of what was refused, with their numbers */
export async function forEach<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
  done: () => void,
): Promise<Map<string, number>> {
  const refused = new Map<string, number>();
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) {
      await work(item).catch((error: unknown) => {
        const code = error instanceof ApiError ? error.code : 'INTERNAL_ERROR';
        refused.set(code, (refused.get(code) ?? 0) + 1);
      });
      done();
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
  return refused;
}
