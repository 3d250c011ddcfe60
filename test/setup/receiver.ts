import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { httpServer } from '../runtime/loopback-server.js';
import { until } from './until.js';

const PATH = '/told';

/** One delivery as it arrived. */
export interface Arrived {
  headers: IncomingHttpHeaders;
  /** The bytes of the body. */
  raw: Buffer;
  body: Record<string, unknown>;
}

/** A receiver of deliveries on 127.0.0.1 that lives for one test. */
export interface Receiver {
  url: string;
  /** Every attempt so far, in order. */
  arrived: Arrived[];
  /** The attempts once there are so many. */
  untilArrived(count: number): Promise<Arrived[]>;
}

/** @param answer what it says to each attempt, counted from 1; 200 when absent */
export async function receiver(
  answer: (response: ServerResponse, attempt: number) => void = (response) => response.end(),
): Promise<Receiver> {
  const arrived: Arrived[] = [];
  const server = await httpServer((request, response) => {
    // A port of before may be asked for something else.
    if (request.method !== 'POST' || !request.url?.startsWith(PATH)) return void response.writeHead(404).end();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const raw = Buffer.concat(chunks);
      arrived.push({ headers: request.headers, raw, body: JSON.parse(raw.toString()) });
      answer(response, arrived.length);
    });
  });
  return {
    url: server.url + PATH,
    arrived,
    untilArrived: async (count) => {
      await until(() => arrived.length >= count, { what: `${count} notifications, of which ${arrived.length} came` });
      return arrived;
    },
  };
}

/** Answers with this status. */
export const status = (code: number) => (response: ServerResponse) => {
  response.statusCode = code;
  response.end();
};
