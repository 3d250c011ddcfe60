import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { LIMITS } from '../contracts/limits.js';
import { PlatformError } from '../runtime/errors.js';
import type { ApiDeps } from './deps.js';
import { OpenCalls, TokenWatch } from './open-calls.js';
import { callerOf } from './plugins/authentication.js';

/** A reader that takes nothing for so long is disconnected: each may hold a part of the list in memory. */
const STALLED_MS_MAX = 60_000;

/** Answers with JSON Lines, read while the reader takes them. A stream breaks off when its token ends, so that nobody takes it for a whole one. */
export class JsonLines {
  readonly #tokens: TokenWatch;
  readonly #open = new OpenCalls({
    perToken: LIMITS.exportsPerTenant,
    perTenant: LIMITS.exportsPerTenant,
    inAll: LIMITS.exportsPerNode,
  });

  constructor({ authenticator, clocks }: Pick<ApiDeps, 'authenticator' | 'clocks'>) {
    this.#tokens = new TokenWatch(authenticator, clocks);
  }

  /** @throws PlatformError RATE_LIMITED at a limit of streams */
  answer<Item>(
    request: FastifyRequest,
    reply: FastifyReply,
    schema: z.ZodType<Item>,
    items: AsyncIterable<Item>,
  ): FastifyReply {
    const { accessToken: token } = request;
    const leave = this.#open.enter(token, callerOf(request));
    const lines = async function* () {
      for await (const item of items) yield `${JSON.stringify(schema.parse(item))}\n`;
    };
    const stream = Readable.from(lines());
    const unwatch = this.#tokens.watch(token, () =>
      stream.destroy(new PlatformError('unauthorized', 'The access token has ended, and the stream with it.')),
    );
    stream.once('close', () => {
      unwatch();
      leave();
    });
    reply.raw.setTimeout(STALLED_MS_MAX, () => reply.raw.destroy());
    return reply.type('application/jsonl').header('cache-control', 'no-store').send(stream);
  }
}
