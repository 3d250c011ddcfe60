import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Credentials, TokenProvider } from './client/api/token-source.js';

/**
 * The platform's address and the caller's credential. Missing options come from the environment: `FLEET_BASE_URL`, `FLEET_TOKEN`, or
 * `FLEET_CLIENT_ID` and `FLEET_CLIENT_SECRET`, and `FLEET_CA_FILE`. Without any address the SDK uses the local platform that `npm start`
 * runs, as described by `dev.json` in `FLEET_DATA_DIR` (`.fleet` by default). An agent uses the agent credential of that file.
 */
export interface AccessOptions {
  /** Address of the platform's API, for example `http://127.0.0.1:8080`. */
  url?: string;
  clientId?: string;
  clientSecret?: string;
  /** Replaces `clientId` and `clientSecret`: an access token, or a function that returns one. A fixed token is not renewed when it expires. */
  token?: string | TokenProvider;
  /** Certificate authority, trusted in addition to the default ones: PEM as text or bytes, or the path of a file. */
  ca?: string | Uint8Array;
}

export const ACCESS_OPTIONS = { url: true, clientId: true, clientSecret: true, token: true, ca: true } as const;

/** `AccessOptions` with every missing option resolved. */
export interface Access {
  url: string;
  credentials: Credentials;
  ca?: string;
}

/** Selects the credential of a local platform: the one for callers, or the one for agents. */
export type Role = 'caller' | 'agent';

const EXAMPLE = 'for example http://127.0.0.1:8080';
const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Resolves missing options from the environment.
 * @param role selects the credential of a local platform
 * @throws Error that names the missing or invalid option
 */
export function resolveAccess(
  options: AccessOptions,
  role: Role = 'caller',
  environment: Environment = process.env,
): Access {
  const access = completeAccess(options, role, environment);
  requireApiUrl(access.url);
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

/** Takes both the address and the credential from `dev.json`, so that a local credential is never sent to another address. */
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
  if (options.ca !== undefined) return { ca: certificatesIn(options.ca, '`ca`') };
  return file ? { ca: certificatesIn(file, 'FLEET_CA_FILE') } : {};
}

/**
 * The certificates in PEM.
 * @param source where they come from, for the error
 * @throws Error that says whether text, bytes or which file is none
 */
function certificatesIn(ca: string | Uint8Array, source: string): string {
  if (typeof ca !== 'string') return requireCertificates(new TextDecoder().decode(ca), `the bytes in ${source}`);
  if (ca.includes('-----BEGIN')) return requireCertificates(ca, `the text in ${source}`);
  const what = `the file ${resolve(ca)} (${source})`;
  let pem: string;
  try {
    pem = readFileSync(ca, 'utf8');
  } catch (cause) {
    const hint = source === '`ca`' ? ' PEM as text begins with -----BEGIN CERTIFICATE-----.' : '';
    throw new Error(`The certificate authority cannot be read: ${what}.${hint}`, { cause });
  }
  return requireCertificates(pem, what);
}

/** @throws Error unless `url` is an http:// or https:// address without parameters */
function requireApiUrl(url: string): void {
  const { protocol, search, hash } = URL.canParse(url) ? new URL(url) : { protocol: '', search: '', hash: '' };
  if (search || hash) {
    throw new Error(
      `${url} has parameters. Give the address alone, with its path if it has one (\`url\` or FLEET_BASE_URL).`,
    );
  }
  if (protocol === 'http:' || protocol === 'https:') return;
  const isMesh = protocol === 'ws:' || protocol === 'wss:';
  const remedy = isMesh ? 'That is the address of a mesh; give the API’s' : 'Give one with http:// or https://';
  throw new Error(`${url} is not the address of an API. ${remedy} (\`url\` or FLEET_BASE_URL), ${EXAMPLE}.`);
}

/** @throws Error unless `pem` holds at least one certificate and every certificate in it can be parsed */
function requireCertificates(pem: string, what: string): string {
  const message = `The certificate authority is not one or more certificates in PEM: ${what}.`;
  const blocks = pem.match(PEM_BLOCK) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
  } catch (cause) {
    throw new Error(message, { cause });
  }
  if (blocks.length === 0) throw new Error(message);
  return pem;
}
