import type { SourceErrorCode } from '../../contracts/api/knowledge/knowledge.js';

/** A document that cannot be taken in. The message is shown to the caller. */
export class ParseError extends Error {
  constructor(
    readonly code: SourceErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'ParseError';
  }
}
