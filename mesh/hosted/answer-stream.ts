import { EventReader } from '../../http/event-reader.js';
import type { OutboundStream } from '../../http/outbound.js';
import { type HostedAnswer, readAnswer } from './answer.js';
import { ANSWER_BYTES_MAX } from './call.js';

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

/** The answers in a stream as they come. One that `EventReader` has a problem with ends in garbage. Leaving the loop drops the connection. */
export async function* readEvents(answer: OutboundStream): AsyncGenerator<HostedAnswer> {
  const reader = new EventReader();
  for await (const chunk of answer.body) {
    for (const data of reader.read(chunk)) yield readAnswer(data);
    if (reader.problem !== undefined) return yield { kind: 'garbage', problem: reader.problem };
  }
}
