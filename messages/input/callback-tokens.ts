import { createHash, randomBytes } from 'node:crypto';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { DecidingRule } from './principals.js';

const TOKEN_BYTES = 32;

/** What a request is about. */
export type RequestSubject = { tenant_id: string } & (
  | { message_id: string; plan_id: null }
  | { message_id: null; plan_id: string }
);

/** What a callback token answers, and for whom it was issued. */
export type TokenPurpose = RequestSubject &
  DecidingRule & {
    request_id: string;
    /** The digest of the request, as the delivery announces it. */
    digest: string;
    expires_at: Date;
    /** Digest of where the delivery that carries it goes; none for the token of a Slack user. */
    destination?: string | null;
    /** The user of Slack to whom alone it was given; none for the token of a delivery. */
    slack_user?: string | null;
  };

/** A callback token, and when it was used. `writers`: the rule's writers at the time of issue and those of now. */
export type FoundToken = TokenPurpose & {
  used_at: Date | null;
  /** The approvers that the rule names now; none if it was deleted. */
  approvers: string[];
};

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Issues a token of 256 random bits for each purpose, in the transaction that writes the deliveries with them. Only hashes are stored. */
export async function issueCallbackTokens(tx: Tx, purposes: TokenPurpose[]): Promise<string[]> {
  const tokens = purposes.map(() => randomBytes(TOKEN_BYTES).toString('base64url'));
  const rows = purposes.map((purpose, index) => ({
    ...purpose,
    token_hash: hashOf(tokens[index] ?? '').toString('hex'),
  }));
  if (rows.length === 0) return tokens;
  await tx.query(
    `INSERT INTO callback_tokens (token_hash, tenant_id, message_id, plan_id, request_id, digest, rule_id, writers, destination, slack_user, expires_at)
       SELECT decode(token_hash, 'hex'), tenant_id, message_id, plan_id, request_id, digest, rule_id, writers, destination, slack_user, expires_at
         FROM jsonb_to_recordset($1) AS t (token_hash text, tenant_id text, message_id text, plan_id text, request_id text, digest text, rule_id text,
           writers text[], destination text, slack_user text, expires_at timestamptz)`,
    [JSON.stringify(rows)],
  );
  return tokens;
}

// Whoever writes the rule after a token was issued may point its channels elsewhere too: the writers of then and of now count together.
const TOKEN = `c.tenant_id, c.message_id, c.plan_id, c.request_id, c.digest, c.rule_id, c.destination, c.slack_user, c.expires_at, c.used_at,
  ARRAY(SELECT DISTINCT unnest(c.writers || coalesce(r.writers, '{}'))) AS writers, coalesce(r.approvers, '{}') AS approvers`;
const FROM = 'callback_tokens c LEFT JOIN alert_rules r ON r.tenant_id = c.tenant_id AND r.rule_id = c.rule_id';
const FIND = `
  SELECT ${TOKEN} FROM ${FROM} JOIN tenants t ON t.tenant_id = c.tenant_id WHERE c.token_hash = $1 AND t.deleted_at IS NULL`;

/**
 * What a token answers, whether it was used before or not.
 * @throws PlatformError unauthorized for a token that nobody issued, and for one of a deleted tenant
 */
export async function findCallbackToken(db: Db, token: string): Promise<FoundToken> {
  const [row] = await db.system((tx) => tx.query<FoundToken>(FIND, [hashOf(token)]));
  if (!row) throw new PlatformError('unauthorized', 'The callback_token is not valid.');
  return row;
}

/** The tenant that a token for this message or plan belongs to. @throws PlatformError unauthorized for any other token */
export async function tenantOfToken(db: Db, token: string, id: string): Promise<string> {
  const { tenant_id, message_id, plan_id } = await findCallbackToken(db, token);
  if ((message_id ?? plan_id) !== id) throw new PlatformError('unauthorized', 'The callback_token is not valid.');
  return tenant_id;
}

const READ = `SELECT ${TOKEN} FROM ${FROM} WHERE c.token_hash = $1 AND c.tenant_id = $2`;

/** Spends a token, or only checks that it could be spent. */
export type TakeToken = (tx: Tx, tenantId: string, token: string) => Promise<FoundToken>;

/** @throws PlatformError as `spendCallbackToken`, which follows later: this locks nothing */
export const checkCallbackToken: TakeToken = (tx, tenantId, token) => usableToken(tx, READ, tenantId, token);

/**
 * Spends a token, in the transaction that records its answer: if that does not commit, the token is unspent. Of two uses at once the second
 * waits for the first.
 * @throws PlatformError ALREADY_RESOLVED for a used token, CALLBACK_TOKEN_EXPIRED for one whose time ran out
 */
export const spendCallbackToken: TakeToken = async (tx, tenantId, token) => {
  const row = await usableToken(tx, `${READ} FOR UPDATE OF c`, tenantId, token);
  await tx.query('UPDATE callback_tokens SET used_at = now() WHERE token_hash = $1', [hashOf(token)]);
  return row;
};

async function usableToken(tx: Tx, read: string, tenantId: string, token: string): Promise<FoundToken> {
  const [row] = await tx.query<FoundToken>(read, [hashOf(token), tenantId]);
  if (!row) throw new PlatformError('unauthorized', 'The callback_token is not valid.');
  if (row.used_at !== null) throw new PlatformError('ALREADY_RESOLVED', 'The callback_token was already used.');
  if (row.expires_at.getTime() <= Date.now())
    throw new PlatformError('CALLBACK_TOKEN_EXPIRED', 'The time to answer ran out.');
  return row;
}

const MISDIRECTED = `${READ} AND c.destination IS DISTINCT FROM $3 FOR UPDATE OF c`;

/**
 * Keeps a token from being sent to another destination than it was issued for: then a new one is issued, and the old one is deleted, unless it was used. The
 * caller's transaction stores the delivery with the new token.
 * @param writers of the rule, as they were when the destination was read
 * @returns the new token; null if the old one may go there, or no longer exists
 */
export async function replaceMisdirected(
  tx: Tx,
  { tenant_id, token }: { tenant_id: string; token: string },
  { destination, writers }: { destination: string; writers: readonly string[] },
): Promise<string | null> {
  const [old] = await tx.query<FoundToken>(MISDIRECTED, [hashOf(token), tenant_id, destination]);
  if (!old) return null;
  await tx.query('DELETE FROM callback_tokens WHERE token_hash = $1 AND used_at IS NULL', [hashOf(token)]);
  const purpose = { ...old, destination, writers: [...new Set([...old.writers, ...writers])] };
  const [fresh = ''] = await issueCallbackTokens(tx, [purpose]);
  return fresh;
}
