import type { MessagesGetRequest } from '../../../contracts/api/messages.js';
import type { Reader } from '../../../contracts/permissions.js';
import { messagesInState, messagesOfSession } from '../../../db/message-filters.js';
import { ownMessages, viewOf } from '../../../db/ownership.js';
import type { KeyList } from '../../../db/pages/page.js';
import type { IdRange } from '../../../runtime/ids.js';

/** Planned with the values, so that absent filters are not in the plan. `$5`: the instance that has the message, or had it last. */
const MATCHING = `m.tenant_id = $1
  AND ($4::text IS NULL OR coalesce(m.agent_type, m.want_agent_type) = $4) AND ($5::text IS NULL OR m.instance_id = $5)
  AND ($7::timestamptz IS NULL OR m.created_at >= $7) AND ($8::timestamptz IS NULL OR m.created_at < $8)
  AND ($10::text IS NULL OR m.message_id >= $10) AND ($11::text IS NULL OR m.message_id < $11)`;

/** Conditions on the user, the credential and the client's messageId. */
const sentAs = (
  alias: string,
) => `($12::text IS NULL OR ${alias}.user_id = $12) AND ($13::text IS NULL OR ${alias}.credential_id = $13)
  AND ($14::text IS NULL OR ${alias}.client_message_id = $14)`;

/** All conditions on `messages m`. */
export const OF_ALL = `${MATCHING} AND ($3::text IS NULL OR ${messagesInState('m', '$3')}) AND ($2::text IS NULL OR ${messagesOfSession('m', '$1', '$2')})
  AND ($6::text IS NULL OR m.error_code = $6) AND ${sentAs('m')} AND ${ownMessages('m', '$9')}`;

/**
 * All conditions on `running_messages m`, which have no error. @param more conditions on its row `o` of `messages` @param given SQL: whether to check `more`
 */
export const ofRunning = (more = 'true', given = 'false') => `${MATCHING} AND ($3::text IS NULL OR m.state = $3)
  AND ($2::text IS NULL OR m.session_id = $2) AND $6::text IS NULL
  AND ((num_nonnulls($9::text, $12::text, $13::text, $14::text) = 0 AND NOT ${given}) OR EXISTS (
    SELECT 1 FROM messages o WHERE o.tenant_id = m.tenant_id AND o.message_id = m.message_id AND ${sentAs('o')} AND ${ownMessages('o', '$9')} AND ${more}))`;

/** Larger stored content is not searched for texts: decompressing it for many messages would take too long. */
const READ_BYTES = 64 * 1024;

/** SQL: the texts of stored content, each as `said`; none of larger content. @param path of the texts; without it, those of parts */
export const textsIn = (content: string, path = '$[*].text') =>
  `jsonb_path_query(CASE WHEN pg_column_size(${content}) <= ${READ_BYTES} THEN ${content} END, '${path}') AS said`;

/** Whether the words `text` are in what was sent, in the answer or in the error, in upper or lower case. @param text SQL */
export function hasText(alias: string, text: string): string {
  const isIn = (said: string) => `position(lower(${text}) IN lower(${said})) > 0`;
  const isAmong = (texts: string) => `EXISTS (SELECT 1 FROM ${texts} WHERE ${isIn("said #>> '{}'")})`;
  const inContent = `${isAmong(textsIn(`${alias}.parts`))} OR ${isAmong(textsIn(`${alias}.artifacts`, '$[*].parts[*].text'))}`;
  return `(${isIn(`coalesce(${alias}.error_message, '')`)} OR ${inContent})`;
}

/** The values of these conditions, `$1` to `$14`. */
export function filterValues(reader: Reader, query: MessagesGetRequest, { least, bound }: IdRange): KeyList['values'] {
  const { session_id, state, agent_type, instance_id, error_code, since, until } = query;
  const filters = [session_id, state, agent_type, instance_id, error_code, since, until, viewOf(reader)];
  return [
    reader.tenant_id,
    ...filters.map((value) => value ?? null),
    least,
    bound,
    query.user_id ?? null,
    query.credential_id ?? null,
    query.client_message_id ?? null,
  ];
}
