import { compactVerify, createLocalJWKSet, errors } from 'jose';
import { z } from 'zod';
import { Receipt } from '../contracts/api/policies/requests.js';
import type { KeyKind } from './key-ring.js';

/** Tells receipts from tokens: no token has this type, and no receipt another. */
export const RECEIPT_TYPE = 'fleet-receipt+jwt';

const KeySet = z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.string() })) });
const KIND: KeyKind = 'receipt';

/**
 * What a receipt says, where a key for receipts in the key set has signed it. Needs nothing of the platform.
 * @param jwks the content of `/.well-known/jwks.json`
 * @throws Error that says what is wrong with the receipt or the key set
 */
export async function verifyReceipt(receipt: string, jwks: unknown): Promise<{ kid: string; receipt: Receipt }> {
  const parsed = KeySet.safeParse(jwks);
  if (!parsed.success) throw new Error('the key set is not a JWKS');
  const keys = parsed.data.keys.filter((key) => key.kind === KIND);
  try {
    const { payload, protectedHeader } = await compactVerify(receipt, createLocalJWKSet({ keys }), {
      algorithms: ['EdDSA'],
    });
    if (protectedHeader.typ !== RECEIPT_TYPE) throw new Error(`its type is not ${RECEIPT_TYPE}`);
    return { kid: protectedHeader.kid ?? '', receipt: Receipt.parse(JSON.parse(new TextDecoder().decode(payload))) };
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) throw new Error('no key for receipts in the key set has signed it');
    if (error instanceof errors.JOSEError || error instanceof z.ZodError || error instanceof SyntaxError)
      throw new Error('it is not a receipt, or was changed');
    throw error;
  }
}
