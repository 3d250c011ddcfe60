// A worker thread that parses large JSON texts: it gets `{id, bytes}` and answers a `ThreadAnswer`.
import { parentPort } from 'node:worker_threads';
import { LIMITS } from '../../contracts/limits.js';
import { PlatformError } from '../../runtime/errors.js';
import { parseJson } from './json-body.js';
import type { LongText, ThreadAnswer, ThreadTask } from './large-json.js';

/** Takes the long strings out of a value, in place. The value has passed `parseJson`, which bounds the recursion. */
function takeLongTexts(root: object, path: string[], taken: LongText[]): void {
  for (const [key, member] of Object.entries(root) as [string, unknown][]) {
    if (typeof member === 'string' && member.length > LIMITS.longTextChars) {
      taken.push({ path: [...path, key], bytes: new TextEncoder().encode(member) });
      (root as Record<string, unknown>)[key] = null;
    } else if (typeof member === 'object' && member !== null) takeLongTexts(member, [...path, key], taken);
  }
}

function answer({ id, bytes }: ThreadTask): ThreadAnswer {
  try {
    const parsed = parseJson(bytes);
    if (!parsed) return { id, isJson: false };
    const root = { value: parsed.value };
    const texts: LongText[] = [];
    takeLongTexts(root, [], texts);
    const rest = JSON.stringify(root);
    if (rest.length > LIMITS.largeBodyRestChars) {
      const bound = `${LIMITS.largeBodyRestChars} characters beside its texts of more than ${LIMITS.longTextChars}`;
      throw new PlatformError('PAYLOAD_TOO_LARGE', `A body of this size may have ${bound}.`);
    }
    return { id, isJson: true, rest, texts };
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    return { id, refused: { code: error.code, message: error.message } };
  }
}

parentPort?.on('message', (task: ThreadTask) => {
  const answered = answer(task);
  const texts = 'texts' in answered ? answered.texts : [];
  parentPort?.postMessage(
    answered,
    texts.map(({ bytes }) => bytes.buffer as ArrayBuffer),
  );
});
