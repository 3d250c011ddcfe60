import { createHmac } from 'node:crypto';

/** A key that was replaced. */
export interface PreviousSecret {
  secret: string;
  /** It signs too until then, in milliseconds since 1970. */
  until: number;
}

/** The keys of a webhook. */
export interface SigningSecrets {
  secret?: string;
  /** The newest first. */
  previous_secrets?: PreviousSecret[];
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
 * HMAC-SHA256 of the body. After a rotation `webhook-signature` has one more signature for each previous secret.
 * @param nowMs the time of the attempt, in milliseconds since 1970
 */
export function signatureHeaders(
  { secret, previous_secrets = [] }: SigningSecrets,
  deliveryId: string,
  body: Buffer,
  nowMs: number,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const unsigned = { 'webhook-id': deliveryId, 'webhook-timestamp': timestamp };
  if (!secret) return unsigned;
  const previous = previous_secrets.filter(({ until }) => nowMs < until);
  const valid = [secret, ...previous.map((one) => one.secret)];
  const content = `${deliveryId}.${timestamp}.`;
  return {
    ...unsigned,
    'webhook-signature': valid.map((one) => standardSignature(one, content, body)).join(' '),
    'x-service-signature': createHmac('sha256', secret).update(body).digest('hex'),
  };
}
