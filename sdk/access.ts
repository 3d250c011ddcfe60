import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { requireApiUrl, requireCertificates } from './access-checks.js';

/** Gives a valid access token; asked again when the last one nears its end, or was refused. */
export type TokenProvider = () => string | Promise<string>;

/**
 * Where a platform is and who calls it. What is left out comes from the environment: `FLEET_BASE_URL`, `FLEET_TOKEN`, or
 * `FLEET_CLIENT_ID` and `FLEET_CLIENT_SECRET`, and `FLEET_CA_FILE`. Where no address is given at all, the platform that `npm start`
 * runs is taken: the one that wrote `dev.json` into `FLEET_DATA_DIR` (`.fleet`). An agent takes the credential for agents from there.
 */
export interface AccessOptions {
  /** Where the platform's API is, for example `http://127.0.0.1:8080`. */
  url?: string;
  clientId?: string;
  clientSecret?: string;
  /** In place of a client's id and secret: an access token, or what gives one. A token that ends is not renewed. */
  token?: string | TokenProvider;
  /** Certificate authority in PEM, trusted beside the usual ones. */
  ca?: string;
}

/** Access with nothing left out. */
export interface Access {
  url: string;
  credentials: { clientId: string; clientSecret: string } | { token: string | TokenProvider };
  ca?: string;
}

/** Who calls: the tenant's own programs, or an agent. */
export type Role = 'caller' | 'agent';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Completes what was given from the environment.
 * @param role decides which credential of a local platform is taken
 * @throws Error that names what is missing, or cannot be used
 */
export function resolveAccess(
  options: AccessOptions,
  role: Role = 'caller',
  environment: Environment = process.env,
): Access {
  const access = completeAccess(options, role, environment);
  requireApiUrl(access.url);
  if (access.ca !== undefined) requireCertificates(access.ca);
  return access;
}

function completeAccess(options: AccessOptions, role: Role, environment: Environment): Access {
  const url = options.url ?? environment.FLEET_BASE_URL;
  if (!url) return localAccess(options, role, environment);
  return { url, credentials: credentialsOf(options, environment), ...certificate(options, environment.FLEET_CA_FILE) };
}

function credentialsOf(options: AccessOptions, environment: Environment): Access['credentials'] {
  if (options.token !== undefined) return { token: options.token };
  const clientId = options.clientId ?? environment.FLEET_CLIENT_ID;
  const clientSecret = options.clientSecret ?? environment.FLEET_CLIENT_SECRET;
  if (clientId && clientSecret) return { clientId, clientSecret };
  if (environment.FLEET_TOKEN) return { token: environment.FLEET_TOKEN };
  throw new Error(
    'No credential: give clientId and clientSecret, or a token (or FLEET_CLIENT_ID and FLEET_CLIENT_SECRET).',
  );
}

/** A local platform's own credential goes to that platform only, never to an address that came from elsewhere. */
function localAccess(options: AccessOptions, role: Role, environment: Environment): Access {
  const file = join(resolve(environment.FLEET_DATA_DIR || '.fleet'), 'dev.json');
  let dev: Record<string, string | null>;
  try {
    dev = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string | null>;
  } catch (cause) {
    throw new Error(`No platform: give url (or FLEET_BASE_URL); none runs here either (${file} cannot be read).`, {
      cause,
    });
  }
  const { client_id, client_secret, agent_client_id, agent_client_secret } = dev;
  const [id, secret] = role === 'agent' ? [agent_client_id, agent_client_secret] : [client_id, client_secret];
  const local = { FLEET_CLIENT_ID: id ?? '', FLEET_CLIENT_SECRET: secret ?? '' };
  const url = dev.base_url ?? '';
  return { url, credentials: credentialsOf(options, local), ...certificate(options, dev.ca_file ?? undefined) };
}

function certificate(options: AccessOptions, file: string | undefined): { ca?: string } {
  if (options.ca !== undefined) return { ca: options.ca };
  if (!file) return {};
  try {
    return { ca: readFileSync(file, 'utf8') };
  } catch (cause) {
    throw new Error(`The certificate authority ${file} (FLEET_CA_FILE) cannot be read.`, { cause });
  }
}
