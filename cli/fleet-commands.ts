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
import { type Credential, CredentialCreateRequest, CredentialRotateRequest } from '../contracts/auth.js';
import { AgentTypeOfAgents } from '../contracts/primitives.js';
import { CliError, type Store } from './fleet-store.js';

/** What was typed behind the command's name. */
export interface Typed {
  /** The one positional argument; '' when there is none. */
  argument: string;
  options: Record<string, string | undefined>;
}

interface Command {
  /** As the help shows it, behind the name. */
  usage: string;
  summary: string;
  /** Whether it takes an argument. */
  argument: boolean;
  options: readonly string[];
  run: (store: Store, typed: Typed) => Promise<Record<string, unknown>>;
}

const LIST_MAX = 1_000;
const TenantName = z.string().trim().min(1).max(256);

function needed(typed: Typed, option: string): string {
  const value = typed.options[option];
  if (value === undefined) throw new CliError(`--${option} is needed.`);
  return value;
}

function words(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CliError(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not fit'}`.replace(/^: /, ''));
}

function shown({ credential, client_secret }: IssuedCredential) {
  const { credential_id, client_id, scopes, tenant_id } = credential;
  return { credential_id, client_id, client_secret, scopes, tenant_id };
}

async function tenantOf({ db }: Store, credentialId: string): Promise<string> {
  const status = await credentialStatus(db, credentialId);
  if (!status) throw new CliError(`There is no credential ${credentialId}.`);
  return status.tenant_id;
}

async function create(store: Store, typed: Typed) {
  const tenantId = needed(typed, 'tenant');
  const fields = checked(CredentialCreateRequest, {
    name: needed(typed, 'name'),
    scopes: words(needed(typed, 'scopes')),
    agent_types: words(typed.options['agent-types'] ?? ''),
    expires_at: typed.options['expires-at'],
  });
  return store.db.system(async (tx) => {
    await requireTenant(tx, tenantId);
    return shown(await createCredential(tx, store.secrets, tenantId, fields));
  });
}

async function list(store: Store, typed: Typed): Promise<{ count: number; credentials: Credential[] }> {
  const tenantId = needed(typed, 'tenant');
  return store.db.system(async (tx) => {
    await requireTenant(tx, tenantId);
    return listCredentials(tx, tenantId, { limit: LIST_MAX, offset: 0 });
  });
}

async function rotate(store: Store, typed: Typed) {
  const { credential_id, overlap_seconds } = checked(CredentialRotateRequest, {
    credential_id: typed.argument,
    overlap_seconds:
      typed.options['overlap-seconds'] === undefined ? undefined : Number(typed.options['overlap-seconds']),
  });
  const tenantId = await tenantOf(store, credential_id);
  return shown(
    await store.db.system((tx) => rotateCredential(tx, store.secrets, tenantId, credential_id, overlap_seconds)),
  );
}

async function revoke(store: Store, { argument }: Typed) {
  const tenantId = await tenantOf(store, argument);
  const { credential_id, revoked_at } = await store.db.system((tx) => revokeCredential(tx, tenantId, argument));
  return { credential_id, revoked_at };
}

async function updateTenant({ db }: Store, typed: Typed) {
  const tenant_id = typed.argument;
  const given = needed(typed, 'default-agent-type');
  const default_agent_type = given === 'none' ? null : checked(AgentTypeOfAgents, given);
  await db.system(async (tx) => {
    await requireTenant(tx, tenant_id);
    await setDefaultType(tx, tenant_id, default_agent_type);
  });
  return { tenant_id, default_agent_type };
}

/** Every command by its name. What one gives is what `--json` prints. */
export const COMMANDS: Record<string, Command> = {
  'tenants create': {
    usage: 'NAME',
    summary: 'make a tenant',
    argument: true,
    options: [],
    run: async ({ db }, { argument }) => ({ ...(await createTenant(db, checked(TenantName, argument))) }),
  },
  'tenants list': {
    usage: '',
    summary: 'list the tenants',
    argument: false,
    options: [],
    run: async ({ db }) => ({ tenants: await listTenants(db) }),
  },
  'tenants update': {
    usage: 'TENANT_ID --default-agent-type TYPE|none',
    summary: 'set the agent type that gets messages which name no target',
    argument: true,
    options: ['default-agent-type'],
    run: updateTenant,
  },
  'tenants delete': {
    usage: 'TENANT_ID',
    summary: 'end a tenant and its tokens; its records stay',
    argument: true,
    options: [],
    run: async ({ db }, { argument }) => ({ ...(await deleteTenant(db, argument)) }),
  },
  'credentials create': {
    usage: '--tenant ID --name N --scopes read,admin [--agent-types a,b] [--expires-at T]',
    summary: "make a credential; its secret is shown once; --agent-types '*': any type",
    argument: false,
    options: ['tenant', 'name', 'scopes', 'agent-types', 'expires-at'],
    run: create,
  },
  'credentials list': {
    usage: '--tenant ID',
    summary: "list a tenant's credentials",
    argument: false,
    options: ['tenant'],
    run: async (store, typed) => ({ ...(await list(store, typed)) }),
  },
  'credentials rotate': {
    usage: 'CREDENTIAL_ID [--overlap-seconds 86400]',
    summary: 'give a credential a new secret; the old one works on for the overlap',
    argument: true,
    options: ['overlap-seconds'],
    run: rotate,
  },
  'credentials revoke': {
    usage: 'CREDENTIAL_ID',
    summary: 'end a credential and its tokens',
    argument: true,
    options: [],
    run: revoke,
  },
  'keys rotate': {
    usage: '',
    summary: 'sign new tokens with a new key; tokens of the old one stay valid',
    argument: false,
    options: [],
    run: ({ db, secrets }) => rotateSigningKeys(db, secrets),
  },
  'keys list': {
    usage: '',
    summary: 'list the signing keys',
    argument: false,
    options: [],
    run: async ({ db }) => ({ keys: await listSigningKeys(db) }),
  },
};
