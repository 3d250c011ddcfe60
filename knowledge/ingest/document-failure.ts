import { isTransient, PlatformError } from '../../runtime/errors.js';
import { type Embedder, HARMLESS_TEXT } from '../embedder.js';
import { ParseError } from '../parse/parse-error.js';
import type { DocumentFailure } from './documents.js';

/** Whether the fault is the platform's or a provider's and may pass, so that the documents are tried again. */
export function mayPass(error: unknown): boolean {
  return isTransient(error) || (error instanceof PlatformError && error.code === 'BAD_GATEWAY');
}

/**
 * Whether the fault says nothing about the documents at which it came up: the database is away, all places are taken, or the provider embeds
 * nothing else either, which is tried.
 */
export async function isOutage(error: unknown, embedder: Embedder | undefined, signal: AbortSignal): Promise<boolean> {
  if (!mayPass(error) || isTransient(error)) return isTransient(error);
  if (!embedder) return false;
  return embedder.embed([HARMLESS_TEXT], signal).then(() => false, mayPass);
}

/** What the caller is told of a fault that ends its document. */
export function failureOf(error: unknown): DocumentFailure {
  if (error instanceof ParseError) return { code: error.code, message: error.message };
  if (error instanceof PlatformError && error.code === 'BAD_GATEWAY')
    return { code: 'BAD_GATEWAY', message: error.message };
  return { code: 'INTERNAL', message: 'The platform failed to take the document in. Send it again.' };
}
