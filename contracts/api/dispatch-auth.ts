import { z } from 'zod';

/** Text that can stand in a header. */
const HeaderText = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/, 'must be printable ASCII without spaces at its ends');
/** Headers that the platform or HTTP itself sets. */
const RESERVED_HEADER =
  /^(host|connection|keep-alive|te|trailer|upgrade|expect|transfer-encoding|content-.*|accept|traceparent|tracestate|baggage|a2a-.*)$/i;

/** A token of the platform's own, which the agent verifies with the keys at `jwks_url`. */
const BearerJwt = z.object({ type: z.literal('bearer_jwt') });

/** As `apiKey` with `in: header` among the security schemes of A2A. */
const ApiKey = z.strictObject({
  type: z.literal('api_key'),
  /** Of the header, for example `X-API-Key`. */
  name: z
    .string()
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, 'must be the name of a header')
    .refine((name) => !RESERVED_HEADER.test(name), { message: 'must not be a header that the platform sets' }),
  value: HeaderText,
});

/** As `oauth2` with the flow `clientCredentials` among the security schemes of A2A (RFC 6749, section 4.4). */
const ClientCredentials = z.strictObject({
  type: z.literal('oauth2_client_credentials'),
  token_url: z.url({ protocol: /^https?$/ }).max(2048),
  client_id: HeaderText,
  client_secret: HeaderText,
  /** Scopes with spaces between them. */
  scope: HeaderText.optional(),
});
export type ClientCredentials = z.infer<typeof ClientCredentials>;

/** How the platform proves to a hosted agent who asks. */
export const DispatchAuth = z.discriminatedUnion('type', [BearerJwt, ApiKey, ClientCredentials]);
export type DispatchAuth = z.infer<typeof DispatchAuth>;

/** As `DispatchAuth`, without what is secret. */
export const ShownDispatchAuth = z.discriminatedUnion('type', [
  BearerJwt,
  ApiKey.omit({ value: true }),
  ClientCredentials.omit({ client_secret: true }),
]);
export type ShownDispatchAuth = z.infer<typeof ShownDispatchAuth>;
