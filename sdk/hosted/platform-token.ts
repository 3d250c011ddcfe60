import { createRemoteJWKSet, jwtVerify } from 'jose';

const ALGORITHMS = ['EdDSA', 'Ed25519'];
const CLOCK_TOLERANCE_SECONDS = 5;

/** Which tokens a hosted agent trusts; its registration answers it. */
export interface TrustedPlatform {
  /** Where the platform's public keys are; fetched when first needed, and again for an unknown key. */
  jwks_url: string;
  instance_id: string;
  tenant_id: string;
}

/**
 * Checks the 60 s token that the mesh sends with every dispatch: signed by a key of the platform, meant for this instance of
 * this tenant. The audience alone does not say so: another tenant may have an instance of the same name.
 * @returns a check that throws for anything but a valid token
 */
export function platformTokenCheck(registered: TrustedPlatform): (authorization: string | undefined) => Promise<void> {
  const keys = createRemoteJWKSet(new URL(registered.jwks_url), { cooldownDuration: 1_000 });
  return async (authorization) => {
    const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
    const { payload } = await jwtVerify(token, keys, {
      audience: registered.instance_id,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ['exp', 'tenant_id'],
    });
    if (payload.tenant_id !== registered.tenant_id) throw new Error('the token is for another tenant');
  };
}
