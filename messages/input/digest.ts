import type { Executor } from '../../contracts/api/messages.js';
import { fingerprint } from '../accept/draft.js';

/** What an approval of a tool call is bound to. */
export interface ApprovedCall {
  tool: string;
  arguments: Record<string, unknown>;
  executor: Executor;
}

/**
 * The digest of what a human is asked about: SHA-256, in hexadecimal, of its canonical JSON (RFC 8785). Whatever is changed makes another
 * digest, and an approval of the first does not count for it.
 * @param subject of a tool call exactly an `ApprovedCall`
 */
export function digestOf(subject: ApprovedCall | Record<string, unknown>): string {
  return fingerprint(subject);
}
