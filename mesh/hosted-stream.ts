import { createParser } from 'eventsource-parser';
import { LIMITS } from '../contracts/limits.js';
import type { OutboundStream } from '../runtime/outbound.js';
import { type HostedAnswer, readAnswer } from './hosted-answer.js';
import { ANSWER_BYTES_MAX } from './hosted-call.js';

/** Whether the answer is a stream of server-sent events. */
export function isEventStream(answer: OutboundStream): boolean {
  return /^text\/event-stream\b/i.test(answer.headers['content-type'] ?? '');
}

/** Reads a JSON answer, up to 2 MiB of it. */
export async function readWhole(answer: OutboundStream): Promise<HostedAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) return { kind: 'garbage', problem: 'is larger than 2 MiB' };
  }
  return readAnswer(Buffer.concat(chunks).toString());
}

/** The answers in a stream as they come. An event of more than 1 MiB ends it. Leaving the loop drops the connection. */
export async function* readEvents(answer: OutboundStream): AsyncGenerator<HostedAnswer> {
  const ready: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => ready.push(data) });
  const decoder = new TextDecoder();
  let unparsedBytes = 0;
  for await (const chunk of answer.body) {
    unparsedBytes += chunk.length;
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (ready.length > 0) unparsedBytes = 0;
    for (const data of ready.splice(0)) yield readAnswer(data);
    if (unparsedBytes > LIMITS.frameBytes) yield { kind: 'garbage', problem: 'holds an event larger than 1 MiB' };
  }
}
