import type { InputRequest } from '../contracts/api/messages.js';
import { SEALED } from '../runtime/sealed-columns.js';
import type { Secrets } from '../runtime/secrets.js';

/** The body of an alert rule's delivery. */
export interface Envelope {
  delivery_id: string;
  event_type: string;
  /** When the event happened. */
  timestamp: string;
  tenant_id: string;
  /** Empty for an event that belongs to no session. */
  session_id: string;
  rule_name: string;
  severity: string;
  type: 'alert' | 'approval_required';
  event: Record<string, unknown>;
  /** Of an approval: the request that is open, and the digest of what it asks about, which changes when somebody edits the arguments. */
  request_id?: string;
  digest?: string;
  /** What a person needs to decide; as `input_request` of the message, whole. */
  prompt?: string;
  expires_at?: string;
  input_request?: InputRequest;
  callback_token?: string;
  resolve_url?: string;
  /** The page on which whoever has the token decides. */
  page_url?: string;
  /** Of a test notification: nothing has happened. */
  test?: true;
}

/** The address of the page on which whoever has the token answers, from the `resolve_url` of the same delivery. */
export function pageUrl(resolveUrl: string, token: string): string {
  return resolveUrl.replace(/\/messages\/[^/]*\/resolve$/, `/approve/${token}`);
}

/** An envelope of a request with the token that answers it, and the page of that token. */
export function withToken(envelope: Envelope, token: string): Envelope {
  const { resolve_url = '' } = envelope;
  return { ...envelope, callback_token: token, page_url: pageUrl(resolve_url, token) };
}

const { purpose: PURPOSE } = SEALED.deliveryBodies;

/** The bytes of a delivery, encrypted: every attempt sends these, and an envelope may hold a callback token. */
export function sealBody(secrets: Pick<Secrets, 'encrypt'>, body: Buffer | string): Buffer {
  return secrets.encrypt(body, PURPOSE);
}

/** @throws UnreadableValue when the data was altered or encrypted with another key */
export function unsealBody(secrets: Pick<Secrets, 'decrypt'>, sealed: Buffer): Buffer {
  return secrets.decrypt(sealed, PURPOSE);
}
