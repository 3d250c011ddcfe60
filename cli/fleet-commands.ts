import { z } from 'zod';
import {
  createCredential,
  credentialStatus,
  type IssuedCredential,
  listCredentials,
  revokeCredential,
  rotateCredential,
} from '../auth/credentials.js';
import { listSigningKeys, rotateSigningKeys } from '../auth/signing-keys.js';
import { createTenant, deleteTenant, listTenants, requireTenant, setDefaultType } from '../auth/tenants.js';
import { CredentialCreateRequest, CredentialRotateRequest } from '../contracts/api/auth.js';
import { AgentTypeOfAgents } from '../contracts/primitives.js';
import type { Db, Tx } from '../db/pool.js';
import { CliError, type Store } from './fleet-store.js';

/** The parsed arguments of a command. */
export interface CommandInput {
  /** The positional argument; '' without one. */
  argument: string;
  options: Record<string, string | undefined>;
}

interface Command {
  /** Shown in the help after the name. */
  usage?: string;
  summary: string;
  /** Whether it takes an argument. */
  argument?: true;
  /** Names of its options, all of which take a value. */
  options?: readonly string[];
  run: (store: Store, input: CommandInput) => Promise<Record<string, unknown>>;
}

const LIST_MAX = 1_000;
const TenantName = z.string().trim().min(1).max(256);

function requiredOption(input: CommandInput, option: string): string {
  const value = input.options[option];
  if (value === undefined) throw new CliError(`--${option} is required.`);
  return value;
}

function commaSeparated(text: string): string[] {
  const words = text.split(',').map((word) => word.trim());
  return words.filter((word) => word !== '');
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CliError(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is invalid'}`.replace(/^: /, ''));
}

function printable({ credential, client_secret }: IssuedCredential) {
  const { credential_id, client_id, scopes, tenant_id } = credential;
  return { credential_id, client_id, client_secret, scopes, tenant_id };
}

async function tenantOf(db: Db, credentialId: string): Promise<string> {
  const status = await credentialStatus(db, credentialId);
  if (!status) throw new CliError(`There is no credential ${credentialId}.`);
  return status.tenant_id;
}

/** @throws PlatformError `NOT_FOUND` for an unknown or deleted tenant */
function ofTenant<T>({ db }: Store, tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.system(async (tx) => {
    await requireTenant(tx, tenantId);
    return work(tx);
  });
}

async function create(store: Store, input: CommandInput) {
  const tenantId = requiredOption(input, 'tenant');
  const fields = parse(CredentialCreateRequest, {
    name: requiredOption(input, 'name'),
    scopes: commaSeparated(requiredOption(input, 'scopes')),
    agent_types: commaSeparated(input.options['agent-types'] ?? ''),
    expires_at: input.options['expires-at'],
  });
  return printable(await ofTenant(store, tenantId, (tx) => createCredential(tx, store.secrets, tenantId, fields)));
}

async function list(store: Store, input: CommandInput) {
  const tenantId = requiredOption(input, 'tenant');
  await store.db.system((tx) => requireTenant(tx, tenantId));
  const { count, rows } = await listCredentials(store.db, tenantId, { page: 1, page_size: LIST_MAX });
  return { count, credentials: rows };
}

async function rotate({ db, secrets }: Store, { argument, options }: CommandInput) {
  const seconds = options['overlap-seconds'];
  const { credential_id, overlap_seconds } = parse(CredentialRotateRequest, {
    credential_id: argument,
    overlap_seconds: seconds === undefined ? undefined : Number(seconds),
  });
  const tenantId = await tenantOf(db, credential_id);
  return printable(await db.system((tx) => rotateCredential(tx, secrets, tenantId, credential_id, overlap_seconds)));
}

async function revoke({ db }: Store, { argument }: CommandInput) {
  const tenantId = await tenantOf(db, argument);
  const { credential_id, revoked_at } = await db.system((tx) => revokeCredential(tx, tenantId, argument));
  return { credential_id, revoked_at };
}

async function updateTenant(store: Store, input: CommandInput) {
  const tenant_id = input.argument;
  const given = requiredOption(input, 'default-agent-type');
  const default_agent_type = given === 'none' ? null : parse(AgentTypeOfAgents, given);
  await ofTenant(store, tenant_id, (tx) => setDefaultType(tx, tenant_id, default_agent_type));
  return { tenant_id, default_agent_type };
}

/** All commands by name. `--json` prints the result of `run`. */
export const COMMANDS: Record<string, Command> = {
  'tenants create': {
    usage: 'NAME',
    summary: 'create a tenant',
    argument: true,
    run: ({ db }, { argument }) => createTenant(db, parse(TenantName, argument)),
  },
  'tenants list': {
    summary: 'list the tenants',
    run: async ({ db }) => ({ tenants: await listTenants(db) }),
  },
  'tenants update': {
    usage: 'TENANT_ID --default-agent-type TYPE|none',
    summary: 'set the agent type for messages without a target',
    argument: true,
    options: ['default-agent-type'],
    run: updateTenant,
  },
  'tenants delete': {
    usage: 'TENANT_ID',
    summary: 'delete a tenant and revoke its tokens; its records stay',
    argument: true,
    run: ({ db }, { argument }) => deleteTenant(db, argument),
  },
  'credentials create': {
    usage: '--tenant ID --name N --scopes read,admin [--agent-types a,b] [--expires-at T]',
    summary: "create a credential; its secret is shown once; --agent-types '*' allows any type",
    options: ['tenant', 'name', 'scopes', 'agent-types', 'expires-at'],
    run: create,
  },
  'credentials list': {
    usage: '--tenant ID',
    summary: "list a tenant's credentials",
    options: ['tenant'],
    run: list,
  },
  'credentials rotate': {
    usage: 'CREDENTIAL_ID [--overlap-seconds 86400]',
    summary: 'create a new secret; the old one stays valid for the overlap',
    argument: true,
    options: ['overlap-seconds'],
    run: rotate,
  },
  'credentials revoke': {
    usage: 'CREDENTIAL_ID',
    summary: 'revoke a credential and its tokens',
    argument: true,
    run: revoke,
  },
  'keys rotate': {
    summary: 'sign new tokens with a new key; existing tokens stay valid',
    run: ({ db, secrets }) => rotateSigningKeys(db, secrets),
  },
  'keys list': {
    summary: 'list the signing keys',
    run: async ({ db }) => ({ keys: await listSigningKeys(db) }),
  },
};
