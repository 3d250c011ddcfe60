import type { Secrets } from '../runtime/secrets.js';

/** What the receiver of notifications knows the platform by. */
export interface PushSecrets {
  token?: string | undefined;
  credentials?: string | undefined;
}

const PURPOSE = 'push-notifications';

/** Encrypts what there is; null for nothing. */
export function sealPushSecrets(secrets: Pick<Secrets, 'encrypt'>, plain: PushSecrets): Buffer | null {
  if (!plain.token && !plain.credentials) return null;
  return secrets.encrypt(JSON.stringify(plain), PURPOSE);
}

/** @throws Error when they were altered, or sealed with another key */
export function unsealPushSecrets(secrets: Pick<Secrets, 'decrypt'>, sealed: Buffer | null): PushSecrets {
  return sealed === null ? {} : (JSON.parse(secrets.decrypt(sealed, PURPOSE).toString()) as PushSecrets);
}
