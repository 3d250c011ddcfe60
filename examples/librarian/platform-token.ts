import { createRemoteJWKSet, jwtVerify } from 'jose';

const ALGORITHMS = ['EdDSA', 'Ed25519'];
const CLOCK_TOLERANCE_SECONDS = 5;

/**
 * Checks the 60 s token that the mesh sends with every dispatch: signed by a key of the platform, meant for this instance.
 * @param jwksUrl where the platform's public keys are; fetched when first needed, and again for an unknown key
 * @returns a check that throws for anything but a valid token
 */
export function platformTokenCheck(
  jwksUrl: string,
  instanceId: string,
): (authorization: string | undefined) => Promise<void> {
  const keys = createRemoteJWKSet(new URL(jwksUrl), { cooldownDuration: 1_000 });
  return async (authorization) => {
    const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
    await jwtVerify(token, keys, {
      audience: instanceId,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ['exp'],
    });
  };
}
