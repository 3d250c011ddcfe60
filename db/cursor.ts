import { hash } from 'node:crypto';
import { z } from 'zod';
import { PlatformError } from '../runtime/errors.js';

const Cursor = z.tuple([z.int(), z.string()]);

/** What a cursor goes on in: a list with these filters, of this caller. */
function bindingOf(of: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(of), 'base64url').slice(0, 22);
}

/** A cursor after a position of a list. @param of caller and filters of the list */
export function cursorAt(position: number, of: readonly unknown[]): string {
  return Buffer.from(JSON.stringify([position, bindingOf(of)])).toString('base64url');
}

/** The position of a cursor. @throws PlatformError BAD_REQUEST for one of another list */
export function positionOf(cursor: string, of: readonly unknown[]): number {
  try {
    const [position, binding] = Cursor.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    if (binding === bindingOf(of)) return position;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof z.ZodError)) throw error;
  }
  throw new PlatformError('BAD_REQUEST', 'cursor: is not one of this list. Give the same filters, as the same caller.');
}
