import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** The tokens that let an agent resume a connection. Only their hashes are kept: in this process, and on the record once it stops. */
export class ResumeTokens {
  #hash: Buffer | undefined;
  /** Hash of the token that the connection itself resumed with: the agent has no other until it has read `welcome`. */
  #earlierHash: Buffer | undefined;

  /** @param earlier the token that the connection resumed with; it stays valid until `forgetEarlier` */
  issue(earlier: string | undefined): string {
    const token = randomBytes(32).toString('base64url');
    this.#hash = resumeTokenHash(token);
    this.#earlierHash = earlier === undefined ? undefined : resumeTokenHash(earlier);
    return token;
  }

  /** Called once the agent has read `welcome`, and so has the new token. */
  forgetEarlier(): void {
    this.#earlierHash = undefined;
  }

  /** SHA-256 of the tokens that resume the connection. */
  get hashes(): Buffer[] {
    return [this.#hash, this.#earlierHash].filter((hash) => hash !== undefined);
  }

  /** Whether a hello with this token resumes the connection. */
  accept(token: string | null | undefined): boolean {
    if (typeof token !== 'string') return false;
    return [this.#hash, this.#earlierHash].some(
      (hash) => hash !== undefined && timingSafeEqual(resumeTokenHash(token), hash),
    );
  }
}

/** SHA-256 of a token. */
export function resumeTokenHash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
