import { z } from 'zod';

/** Bounds of push notifications. */
export const PUSH_LIMITS = {
  configsPerTask: 16,
  urlChars: 2_048,
  idChars: 128,
  secretChars: 4_096,
  schemes: 8,
} as const;

/** What may stand in an HTTP header as it is: visible ASCII and spaces. */
const HeaderText = z
  .string()
  .max(PUSH_LIMITS.secretChars)
  .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII');
/** RFC 9110, section 11.1: an authentication scheme is a token. */
const Scheme = z
  .string()
  .max(64)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be an HTTP authentication scheme');

/**
 * Where a caller wants to be told of a task's changes, as A2A 0.3 spells it. An empty `id`, `token` or `credentials` counts as absent.
 * The first of `schemes` is used.
 */
export const PushNotificationConfig = z.object({
  id: z
    .string()
    .max(PUSH_LIMITS.idChars)
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII')
    .optional(),
  url: z.string().min(1).max(PUSH_LIMITS.urlChars),
  token: HeaderText.optional(),
  authentication: z
    .object({ schemes: z.array(Scheme).min(1).max(PUSH_LIMITS.schemes), credentials: HeaderText.optional() })
    .optional(),
});
export type PushNotificationConfig = z.infer<typeof PushNotificationConfig>;
