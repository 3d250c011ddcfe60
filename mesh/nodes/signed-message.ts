import { timingSafeEqual } from 'node:crypto';
import type { Secrets } from '../../runtime/secrets.js';

const PURPOSE = 'node_message';
/** Clocks of nodes may be this far apart. A message that is older, or from later, is not taken: somebody may have kept it. */
const AGE_MS_MAX = 60_000;
/** Layout: MAC in base64url, the time of sending in milliseconds since 1970, the message. */
const SIGNED = /^([\w-]{43}) (\d{1,15}) (.*)$/s;

/** Why a message of another node is dropped: nobody with the secret key has signed it for this node, or not lately. */
export type DroppedMessage = 'forged' | 'late';

const contentOf = (to: string, sentAtMs: string | number, text: string): string => `${to}\n${sentAtMs}\n${text}`;

/** Signs a message with the secret key, for one node and this moment: whoever can write to Redis is not a node yet. */
export function signMessage(secrets: Pick<Secrets, 'mac'>, to: string, text: string, nowMs = Date.now()): string {
  return `${secrets.mac(contentOf(to, nowMs, text), PURPOSE).toString('base64url')} ${nowMs} ${text}`;
}

/** The text of a message that was signed for this node; during a rotation of the secret key by any of its keys. */
export function openMessage(
  secrets: Pick<Secrets, 'macs'>,
  to: string,
  signed: string,
  nowMs = Date.now(),
): { text: string } | { dropped: DroppedMessage } {
  const [, mac = '', sentAtMs = '', text = ''] = SIGNED.exec(signed) ?? [];
  const given = Buffer.from(mac, 'base64url');
  const isSigned = secrets
    .macs(contentOf(to, sentAtMs, text), PURPOSE)
    .some((expected) => given.length === expected.length && timingSafeEqual(given, expected));
  if (!isSigned) return { dropped: 'forged' };
  return Math.abs(nowMs - Number(sentAtMs)) > AGE_MS_MAX ? { dropped: 'late' } : { text };
}
