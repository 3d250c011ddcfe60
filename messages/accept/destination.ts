import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { AcceptContext, Target } from './draft.js';

/** Media types of a message's files, and those accepted for its answer. Empty: any. */
export interface MediaTypes {
  input: string[];
  output: string[];
}

/** The fields of a message's metadata that name its agent. */
type Destination = { instance_id?: unknown; agent_type?: unknown };

/** Distinct declarations of media types that are compared. With more of them no message is refused. */
const DECLARATIONS_MAX = 500;

/** Resolves a `target_agent`: an instance of that name if the tenant has one, else an agent type. */
async function findTarget(db: Db, tenantId: string, name: string): Promise<Target> {
  const found = await db.tenant(tenantId, (tx) =>
    tx.query('SELECT 1 FROM agents WHERE tenant_id = $1 AND instance_id = $2 AND deregistered_at IS NULL', [
      tenantId,
      name,
    ]),
  );
  return found.length > 0 ? { instance_id: name } : { agent_type: name };
}

/** Whether `declared` covers `type`. Parameters and case are ignored; a star on either side matches anything. */
function covers(declared: string, type: string): boolean {
  const [one, other] = [declared, type].map((name) => (name.split(';', 1)[0] ?? '').trim().toLowerCase().split('/'));
  const same = (index: 0 | 1) => one?.[index] === '*' || other?.[index] === '*' || one?.[index] === other?.[index];
  return same(0) && same(1);
}

/** Whether an agent that declares `modes` accepts the message and can answer it. An agent that declares no input or output modes accepts any. */
export function fits(modes: MediaTypes, wanted: MediaTypes): boolean {
  const accepts =
    modes.input.length === 0 || wanted.input.every((type) => modes.input.some((mode) => covers(mode, type)));
  const answers =
    modes.output.length === 0 ||
    wanted.output.length === 0 ||
    wanted.output.some((type) => modes.output.some((mode) => covers(mode, type)));
  return accepts && answers;
}

/** The media types that a message states; null when it states none. */
function mediaTypesOf({ message, configuration }: MessageSendParams): MediaTypes | null {
  const input = message.parts.flatMap((part) => (part.kind === 'file' ? (part.file.mimeType ?? []) : []));
  const output = configuration?.acceptedOutputModes ?? [];
  return input.length > 0 || output.length > 0 ? { input, output } : null;
}

const OF_INSTANCE = `SELECT agent_card FROM agents WHERE tenant_id = $1 AND coalesce(deregistered_at, 'infinity') = 'infinity'
  AND instance_id = $2 AND agent_type = coalesce($3, agent_type)`;

/** The query, and its values, for the cards of agents that may take the message: one card of each declaration of media types. */
function declarations(tenantId: string, { instance_id, agent_type }: Destination): [string, unknown[]] {
  const type = typeof agent_type === 'string' ? agent_type : null;
  if (typeof instance_id === 'string') return [OF_INSTANCE, [tenantId, instance_id, type]];
  return ['SELECT agent_card FROM declared_cards($1, $2, $3) AS agent_card', [tenantId, type, DECLARATIONS_MAX]];
}

/** The modes in the cards of the agents that may take the message, general ones and those of single skills. */
async function declaredModes(tx: Tx, tenantId: string, destination: Destination): Promise<MediaTypes[]> {
  const modes = (name: string) => `coalesce((SELECT jsonb_agg(DISTINCT mode) FROM (
      SELECT jsonb_path_query(agent_card, '$.default${name}Modes[*] ? (@.type() == "string")') AS mode
       UNION ALL SELECT jsonb_path_query(agent_card, '$.skills[*].${name.toLowerCase()}Modes[*] ? (@.type() == "string")')
    ) AS named), '[]')`;
  const [from, values] = declarations(tenantId, destination);
  return tx.query<MediaTypes>(
    `SELECT ${modes('Input')} AS input, ${modes('Output')} AS output FROM (${from}) AS agents`,
    values,
  );
}

/** Whether the message is on the record already: a repeat is never refused. */
async function isOnRecord(tx: Tx, caller: Caller, { message, metadata }: MessageSendParams): Promise<boolean> {
  const { user_id = caller.user_id } = { ...message.metadata, ...metadata };
  const found = await tx.query(
    'SELECT 1 FROM idempotency_keys WHERE idempotency_key = idempotency_key($1, $2, $3, $4, $5) AND expires_at > now()',
    [caller.tenant_id, caller.credential_id, user_id ?? null, message.contextId ?? '', message.messageId],
  );
  return found.length > 0;
}

/** Refuses a message whose media types fit none of the agents that may take it. Without such agents it is accepted: one may register later. */
async function checkMediaTypes(
  db: Db,
  caller: Caller,
  params: MessageSendParams,
  wanted: MediaTypes,
  destination: Destination,
): Promise<void> {
  const isSupported = await db.tenant(caller.tenant_id, async (tx) => {
    const declared = await declaredModes(tx, caller.tenant_id, destination);
    if (declared.length === 0 || declared.length === DECLARATIONS_MAX) return true;
    return declared.some((modes) => fits(modes, wanted)) || isOnRecord(tx, caller, params);
  });
  if (isSupported) return;
  throw new PlatformError(
    'CONTENT_TYPE_NOT_SUPPORTED',
    'No agent takes these content types and gives the accepted ones.',
  );
}

/**
 * Resolves the `target_agent` of a message, and compares its media types with those that the agents declare. To be called when
 * `needsDestination`.
 * @throws PlatformError CONTENT_TYPE_NOT_SUPPORTED
 */
export async function withDestination(
  db: Db,
  caller: Caller,
  params: MessageSendParams,
  context: AcceptContext,
): Promise<AcceptContext> {
  const name = params.metadata?.target_agent ?? params.message.metadata?.target_agent;
  const wanted = mediaTypesOf(params);
  // Metadata that is not valid is refused later, with the other fields.
  const target = typeof name === 'string' && name !== '' ? await findTarget(db, caller.tenant_id, name) : undefined;
  if (wanted) {
    await checkMediaTypes(db, caller, params, wanted, { ...target, ...params.message.metadata, ...params.metadata });
  }
  return target ? { ...context, target } : context;
}
