import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Config } from '../../../runtime/config.js';
import { PlatformError } from '../../../runtime/errors.js';
import { decodePayloads } from '../../../runtime/payload-codec.js';
import { UnreadableValue } from '../../../runtime/secrets.js';
import type { ApiDeps } from '../../deps.js';
import { bearerToken } from '../../plugins/authentication.js';

/** What a page of the Temporal UI asks at once, with room to spare. */
const PAYLOADS_MAX = 1_000;
const DecodeRequest = z.object({
  payloads: z
    .array(z.object({ metadata: z.record(z.string(), z.base64()).optional(), data: z.base64().optional() }))
    .max(PAYLOADS_MAX),
});

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * `POST /temporal/codec/decode`: shows operators in the Temporal UI and command line what is encrypted. It reads the payloads of all tenants, so it
 * takes a key of its own, and is not there unless one is set. Nothing is encrypted there: workflows are started by the platform.
 */
export function temporalCodecRoutes(
  app: FastifyInstance,
  { config, secrets }: Pick<ApiDeps, 'secrets'> & { config: Pick<Config, 'FLEET_TEMPORAL_CODEC_KEY'> },
): void {
  const key = config.FLEET_TEMPORAL_CODEC_KEY;
  if (key === undefined) return;
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    const isRight = timingSafeEqual(digest(bearerToken(request) ?? ''), digest(key));
    if (!isRight) throw new PlatformError('unauthorized', 'The key of the codec endpoint is missing or wrong.');
  };
  app.post('/temporal/codec/decode', { onRequest }, async (request) => {
    const parsed = DecodeRequest.safeParse(request.body);
    if (!parsed.success) throw new PlatformError('BAD_REQUEST', 'The body must be {payloads: [{metadata, data}]}.');
    try {
      return { payloads: await decodePayloads(secrets, parsed.data.payloads) };
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error;
      throw new PlatformError('BAD_REQUEST', 'A payload was encrypted with another secret key.');
    }
  });
}
