import {
  createCredential,
  credentialStatus,
  type IssuedCredential,
  listCredentials,
  revokeCredential,
  rotateCredential,
} from '../auth/credentials.js';
import { createOperator, listOperators, revokeOperator } from '../auth/operators.js';
import { listSigningKeys, rotateSigningKeys } from '../auth/signing-keys.js';
import { createTenant, deleteTenant, listTenants, requireTenant, setDefaultType } from '../auth/tenants.js';
import { CredentialCreateRequest, CredentialRotateRequest } from '../contracts/api/auth.js';
import { TenantName } from '../contracts/api/tenants/tenants.js';
import { AgentTypeOfAgents } from '../contracts/primitives.js';
import type { Db } from '../db/pool.js';
import { CLIENT_COMMANDS } from './client/client-commands.js';
import { type Command, type CommandInput, ofTenant, operator, parse, requiredOption } from './command.js';
import { ERASE_COMMANDS, erasureOfTenant } from './erase-commands.js';
import { CliError, type Store } from './fleet-store.js';
import { RECEIPT_COMMANDS } from './receipt-commands.js';
import { rotateSecret, secretKeyStatus } from './rotate-secret.js';

const LIST_MAX = 1_000;

function commaSeparated(text: string): string[] {
  const words = text.split(',').map((word) => word.trim());
  return words.filter((word) => word !== '');
}

function printable({ credential, client_secret }: IssuedCredential) {
  const { credential_id, client_id, scopes, tenant_id } = credential;
  return { credential_id, client_id, client_secret, scopes, tenant_id };
}

async function tenantOf(db: Db, credentialId: string): Promise<string> {
  const status = await credentialStatus(db, credentialId, { tenantId: '' });
  if (!status?.tenant_id) throw new CliError(`There is no credential ${credentialId}.`);
  return status.tenant_id;
}

async function create(store: Store, input: CommandInput) {
  const tenantId = requiredOption(input, 'tenant');
  const fields = parse(CredentialCreateRequest, {
    name: requiredOption(input, 'name'),
    scopes: commaSeparated(requiredOption(input, 'scopes')),
    agent_types: commaSeparated(input.options['agent-types'] ?? ''),
    expires_at: input.options['expires-at'],
  });
  return printable(
    await ofTenant(store, tenantId, (tx, author) => createCredential(tx, store.secrets, author, fields)),
  );
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
  const author = { ...operator(), tenant_id: await tenantOf(db, credential_id) };
  return printable(await db.system((tx) => rotateCredential(tx, secrets, author, credential_id, overlap_seconds)));
}

async function revoke({ db }: Store, { argument }: CommandInput) {
  const author = { ...operator(), tenant_id: await tenantOf(db, argument) };
  const { credential_id, revoked_at } = await db.system((tx) => revokeCredential(tx, author, argument));
  return { credential_id, revoked_at };
}

async function updateTenant(store: Store, input: CommandInput) {
  const tenant_id = input.argument;
  const given = requiredOption(input, 'default-agent-type');
  const default_agent_type = given === 'none' ? null : parse(AgentTypeOfAgents, given);
  await ofTenant(store, tenant_id, (tx, author) => setDefaultType(tx, author, default_agent_type));
  return { tenant_id, default_agent_type };
}

/** All commands by name. `--json` prints the result of `run`. */
export const COMMANDS: Record<string, Command> = {
  ...CLIENT_COMMANDS,
  'tenants create': {
    usage: 'NAME',
    summary: 'create a tenant',
    arguments: [1, 1],
    run: ({ db }, { argument }) => createTenant(db, operator(), parse(TenantName, argument)),
  },
  'tenants list': {
    summary: 'list the tenants',
    run: async ({ db }) => ({ tenants: (await listTenants(db, { page: 1, page_size: LIST_MAX })).tenants }),
  },
  'tenants update': {
    usage: 'TENANT_ID --default-agent-type TYPE|none',
    summary: 'set the agent type for messages without a target',
    arguments: [1, 1],
    options: ['default-agent-type'],
    run: updateTenant,
  },
  'tenants delete': {
    usage: 'TENANT_ID [--wait-seconds N]',
    summary: 'delete a tenant: its tokens end at once, and the worker role erases all that it has',
    arguments: [1, 1],
    options: ['wait-seconds'],
    run: async (store, input) => {
      const tenant = await deleteTenant(store.db, { ...operator(), tenant_id: input.argument });
      return { ...tenant, ...(await erasureOfTenant(store, tenant.tenant_id, input)) };
    },
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
    arguments: [1, 1],
    options: ['overlap-seconds'],
    run: rotate,
  },
  'credentials revoke': {
    usage: 'CREDENTIAL_ID',
    summary: 'revoke a credential and its tokens',
    arguments: [1, 1],
    run: revoke,
  },
  'operators create': {
    usage: 'NAME',
    summary: 'create an operator of the platform, who manages tenants over the API; its secret is shown once',
    arguments: [1, 1],
    run: ({ db, secrets }, { argument }) =>
      db.system((tx) => createOperator(tx, secrets, operator(), parse(TenantName, argument))),
  },
  'operators list': {
    summary: 'list the operators of the platform',
    run: async ({ db }) => ({ operators: await listOperators(db) }),
  },
  'operators revoke': {
    usage: 'OPERATOR_ID',
    summary: 'revoke an operator of the platform and its tokens',
    arguments: [1, 1],
    run: async ({ db }, { argument }) => ({ ...(await db.system((tx) => revokeOperator(tx, operator(), argument))) }),
  },
  ...ERASE_COMMANDS,
  ...RECEIPT_COMMANDS,
  'keys rotate-secret': {
    summary:
      'rotate the secret key while the platform runs, and seal everything anew; run again, it finishes what was begun',
    run: rotateSecret,
  },
  'keys status': {
    summary: 'whether a rotation of the secret key is under way, and which credentials still need the key before',
    run: secretKeyStatus,
  },
  'keys rotate': {
    summary: 'sign new tokens and receipts with new keys; existing tokens and receipts stay valid',
    run: ({ db, secrets }) => rotateSigningKeys(db, secrets),
  },
  'keys list': {
    summary: 'list the signing keys',
    run: async ({ db }) => ({ keys: await listSigningKeys(db) }),
  },
};
