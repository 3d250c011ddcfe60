import type { Output, OutputSource, OutputStream } from './agent-task.js';

/** Whether the value is a source of chunks: an async iterable, or a web stream. */
export function isSource(value: unknown): value is OutputSource {
  return typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || 'getReader' in value);
}

/** The chunks of a source. */
export function chunksOf(source: OutputSource): AsyncIterable<Output> {
  return 'getReader' in source ? { [Symbol.asyncIterator]: () => readerOf(source) } : source;
}

/** Reads a web stream. Unlike the stream's own iterator, it can be closed while a read is pending, and then cancels the stream. */
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
