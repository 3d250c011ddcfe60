import type { Output, OutputSource, OutputStream } from './agent-task.js';

/** Whether it gives pieces of an answer one by one: an async iterable, or a web stream. */
export function isSource(value: unknown): value is OutputSource {
  return typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || 'getReader' in value);
}

/** The pieces of a source. */
export function piecesOf(source: OutputSource): AsyncIterable<Output> {
  return 'getReader' in source ? { [Symbol.asyncIterator]: () => readerOf(source) } : source;
}

/** Reads a web stream. Unlike the stream's own iterator it ends while a read is pending, and cancels the stream. */
function readerOf(stream: OutputStream): AsyncIterator<Output> {
  const reader = stream.getReader();
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? { done, value: undefined } : { done: false, value: value as Output };
    },
    return: async () => {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}
