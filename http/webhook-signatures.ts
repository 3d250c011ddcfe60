import { createHmac } from 'node:crypto';

/** The keys of a webhook. The previous one signs too until `previous_until`, in milliseconds since 1970. */
export interface SigningSecrets {
  secret?: string;
  previous_secret?: string;
  previous_until?: number;
}

const STANDARD_PREFIX = 'whsec_';

/** The key of Standard Webhooks: the bytes after `whsec_`, else the text itself. */
function standardKey(secret: string): Buffer {
  return secret.startsWith(STANDARD_PREFIX)
    ? Buffer.from(secret.slice(STANDARD_PREFIX.length), 'base64')
    : Buffer.from(secret);
}

function standardSignature(secret: string, content: string, body: Buffer): string {
  return `v1,${createHmac('sha256', standardKey(secret)).update(content).update(body).digest('base64')}`;
}

/**
 * The headers by which a receiver recognizes a delivery: those of Standard Webhooks, and with a secret `X-Service-Signature`, the hexadecimal
 * HMAC-SHA256 of the body (specification section 5). After a rotation `webhook-signature` has one more signature by the previous secret.
 * @param nowMs the time of the attempt, in milliseconds since 1970
 */
export function signatureHeaders(
  { secret, previous_secret, previous_until = 0 }: SigningSecrets,
  deliveryId: string,
  body: Buffer,
  nowMs: number,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const unsigned = { 'webhook-id': deliveryId, 'webhook-timestamp': timestamp };
  if (!secret) return unsigned;
  const valid = previous_secret && nowMs < previous_until ? [secret, previous_secret] : [secret];
  const content = `${deliveryId}.${timestamp}.`;
  return {
    ...unsigned,
    'webhook-signature': valid.map((one) => standardSignature(one, content, body)).join(' '),
    'x-service-signature': createHmac('sha256', secret).update(body).digest('hex'),
  };
}
