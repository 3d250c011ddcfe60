import type { MessageSendParams } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';

/** Media types that a message is made of, and that its answer may be made of. Empty: any. */
export interface MediaTypes {
  input: string[];
  output: string[];
}

/** Whether `declared` covers `type`: parameters and case do not count, a star stands for anything on either side. */
function covers(declared: string, type: string): boolean {
  const [one, other] = [declared, type].map((name) => (name.split(';', 1)[0] ?? '').trim().toLowerCase().split('/'));
  const same = (index: 0 | 1) => one?.[index] === '*' || other?.[index] === '*' || one?.[index] === other?.[index];
  return same(0) && same(1);
}

/** Whether an agent that declares `modes` may take the message and can answer it. One that declares none of a kind is taken at its word. */
export function fits(modes: MediaTypes, wanted: MediaTypes): boolean {
  const takes =
    modes.input.length === 0 || wanted.input.every((type) => modes.input.some((mode) => covers(mode, type)));
  const gives =
    modes.output.length === 0 ||
    wanted.output.length === 0 ||
    wanted.output.some((type) => modes.output.some((mode) => covers(mode, type)));
  return takes && gives;
}

/** What of its media types a message says: those of its files, and those accepted of its answer; null when it says nothing. */
export function mediaTypesOf({ message, configuration }: MessageSendParams): MediaTypes | null {
  const input = message.parts.flatMap((part) => (part.kind === 'file' ? (part.file.mimeType ?? []) : []));
  const output = configuration?.acceptedOutputModes ?? [];
  return input.length > 0 || output.length > 0 ? { input, output } : null;
}

/** Different declarations that are looked at; a fleet with more is not refused anything. */
const DECLARATIONS_MAX = 500;

/** What the agents declare that a message may go to: for all they do, and for single skills. */
async function declarations(tx: Tx, tenantId: string, to: { instance_id: string | null; agent_type: string | null }) {
  const modes = (name: string) => `coalesce((SELECT jsonb_agg(DISTINCT mode) FROM (
      SELECT jsonb_path_query(agent_card, '$.default${name}Modes[*] ? (@.type() == "string")') AS mode
       UNION ALL SELECT jsonb_path_query(agent_card, '$.skills[*].${name.toLowerCase()}Modes[*] ? (@.type() == "string")')
    ) AS named), '[]')`;
  return tx.query<MediaTypes & Record<string, unknown>>(
    `SELECT DISTINCT ${modes('Input')} AS input, ${modes('Output')} AS output FROM agents
      WHERE tenant_id = $1 AND deregistered_at IS NULL AND ($2::text IS NULL OR instance_id = $2)
        AND ($3::text IS NULL OR agent_type = $3) LIMIT ${DECLARATIONS_MAX}`,
    [tenantId, to.instance_id, to.agent_type],
  );
}

/** Whether the message is on the record already: what was taken once is not refused when it is repeated. */
async function isOnRecord(tx: Tx, caller: Caller, { message }: MessageSendParams): Promise<boolean> {
  const found = await tx.query(
    `SELECT 1 FROM idempotency_keys WHERE client_message_id = $1 AND credential_id = $2 AND requested_context = $3
        AND tenant_id = $4 AND expires_at > now()`,
    [message.messageId, caller.credential_id, message.contextId ?? '', caller.tenant_id],
  );
  return found.length > 0;
}

/**
 * Refuses a message whose media types suit no agent that it may go to. Without any such agent nothing is refused: one may come.
 * @throws PlatformError CONTENT_TYPE_NOT_SUPPORTED
 */
export async function checkMediaTypes(
  db: Db,
  caller: Caller,
  params: MessageSendParams,
  wanted: MediaTypes,
  to: { instance_id?: unknown; agent_type?: unknown },
): Promise<void> {
  const { instance_id, agent_type } = to;
  const suits = await db.tenant(caller.tenant_id, async (tx) => {
    const declared = await declarations(tx, caller.tenant_id, {
      instance_id: typeof instance_id === 'string' ? instance_id : null,
      agent_type: typeof agent_type === 'string' ? agent_type : null,
    });
    const free = declared.length === 0 || declared.length === DECLARATIONS_MAX;
    return free || declared.some((modes) => fits(modes, wanted)) || isOnRecord(tx, caller, params);
  });
  if (!suits)
    throw new PlatformError(
      'CONTENT_TYPE_NOT_SUPPORTED',
      'No agent takes these content types and gives the accepted ones.',
    );
}
