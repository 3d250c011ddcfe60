import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A token that lets an agent continue its connection, and what is kept of it: only its hash, only in this process. */
export function newResumeToken(): { token: string; hash: Buffer } {
  const token = randomBytes(32).toString('base64url');
  return { token, hash: hashOfResumeToken(token) };
}

/** Whether `token` is the one of that hash. */
export function resumeTokenFits(token: string, hash: Buffer): boolean {
  return timingSafeEqual(hashOfResumeToken(token), hash);
}

/** What is kept of a token. */
export function hashOfResumeToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
