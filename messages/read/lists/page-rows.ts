import { asksPerson } from '../../../contracts/message-states.js';
import { readContent } from '../../../db/pages/page-content.js';
import type { Tx } from '../../../db/pool.js';
import { readable, readableRequest } from '../readable.js';
import type { AskedRequest, InputRequestRow } from '../rows.js';
import type { RecordRow } from '../task.js';

/** A message of a page, and its open input request. `whole` false: the page has no room for all of their content. */
export interface PageMessage {
  row: RecordRow;
  request: InputRequestRow | null;
  whole: boolean;
}

const COLUMNS = `tenant_id, message_id, session_id, credential_id, user_id, sender_agent_type, client_message_id, want_agent_type, trace_id, created_at, state,
  instance_id, agent_type, usage, error_code, error_message, updated_at, started_at, completed_at, retry_of`;
const MESSAGES = {
  name: 'messages',
  key: 'message_id',
  columns: COLUMNS,
  content: { parts: "'[]'", turns: "'[]'", artifacts: "'[]'", status_message: 'NULL' },
};
const { artifacts, ...withoutArtifacts } = MESSAGES.content;
const WITH_ARTIFACTS = readContent(MESSAGES);
const WITHOUT_ARTIFACTS = readContent({
  ...MESSAGES,
  columns: `${COLUMNS}, ${artifacts}::jsonb AS artifacts`,
  content: withoutArtifacts,
});
const REQUESTS = readContent({
  name: 'request_details',
  key: 'request_id',
  columns: `tenant_id, request_id, message_id, session_id, kind, source, stage, title, prompt, tool, policy_id, guard, digest, approvers, quorum,
    allow_self, approvals, requested_at, expires_at, remind_at, target, executor`,
  content: { schema: 'NULL', fields: 'NULL', arguments: 'NULL' },
});
const OPEN_REQUESTS = `
  SELECT request_id FROM input_requests WHERE tenant_id = $1 AND message_id = ANY ($2) AND state = 'pending'
   ORDER BY array_position($2::text[], message_id::text)`;

type Whole<Row> = Row & { whole: boolean };

/** Reads the requests of a page, in the order of their ids, with as much of their content as a page may hold. */
export async function readPageRequests<Row extends AskedRequest = AskedRequest>(
  tx: Tx,
  tenantId: string,
  requestIds: string[],
): Promise<Whole<Row>[]> {
  if (requestIds.length === 0) return [];
  const rows = await tx.query<Whole<Row>>(REQUESTS, [tenantId, requestIds]);
  return rows.map(readableRequest);
}

async function openRequests(tx: Tx, tenantId: string, rows: RecordRow[]): Promise<Map<string, Whole<InputRequestRow>>> {
  const waiting = rows.filter(({ state }) => asksPerson(state)).map(({ message_id }) => message_id);
  if (waiting.length === 0) return new Map();
  const ids = await tx.query<{ request_id: string }>(OPEN_REQUESTS, [tenantId, waiting]);
  const requests = await readPageRequests<InputRequestRow>(
    tx,
    tenantId,
    ids.map(({ request_id }) => request_id),
  );
  return new Map(requests.map((request) => [request.message_id, request]));
}

/**
 * Reads the messages of a page, in the order of their ids, with as much of their content as a page may hold.
 * @param options.artifacts false: `artifacts` are not read and are empty
 */
export async function readPageMessages(
  tx: Tx,
  tenantId: string,
  messageIds: string[],
  options: { artifacts: boolean } = { artifacts: true },
): Promise<PageMessage[]> {
  if (messageIds.length === 0) return [];
  const text = options.artifacts ? WITH_ARTIFACTS : WITHOUT_ARTIFACTS;
  const rows = await tx.query<Whole<RecordRow>>(text, [tenantId, messageIds]);
  const requests = await openRequests(tx, tenantId, rows);
  return rows.map(({ whole, ...row }) => {
    const request = requests.get(row.message_id);
    return {
      row: readable(row as RecordRow),
      request: request ?? null,
      whole: whole && request?.whole !== false,
    };
  });
}
