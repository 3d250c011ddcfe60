import { timingSafeEqual } from 'node:crypto';
import type { Secrets } from '../../runtime/secrets.js';

const PURPOSE = 'node_message';
/** How far the time of a message may be from this node's clock, before or after. Beyond that, it may be a replay, and is dropped. */
const AGE_MS_MAX = 60_000;
/** Layout: MAC in base64url, the time of sending in milliseconds since 1970, the message. */
const SIGNED = /^([\w-]{43}) (\d{1,15}) (.*)$/s;

/** Why a message is dropped. `forged`: it was not signed for this node with the secret key. `late`: its time is too far off. */
export type DroppedMessage = 'forged' | 'late';

const contentOf = (to: string, sentAtMs: string | number, text: string): string => `${to}\n${sentAtMs}\n${text}`;

/** Signs a message with the secret key, for one node and this moment: a sender that can write to Redis need not be a node. */
export function signMessage(secrets: Pick<Secrets, 'mac'>, to: string, text: string, nowMs = Date.now()): string {
  return `${secrets.mac(contentOf(to, nowMs, text), PURPOSE).toString('base64url')} ${nowMs} ${text}`;
}

/** Checks the signature and returns the text. During a rotation of the secret key, a signature by any of its keys counts. */
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
