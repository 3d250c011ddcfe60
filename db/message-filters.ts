/**
 * The messages in a state. Those that failed or were canceled are found by their index, if the statement is planned with its values.
 * @param alias of `messages` @param state SQL of type text
 */
export function messagesInState(alias: string, state: string): string {
  return `${alias}.state = ${state} AND (${state} NOT IN ('failed', 'canceled') OR ${alias}.unsuccessful_state = ${state})`;
}

/** The messages of a session, found by their index. @param alias of `messages` @param tenant SQL of type text, as `session` */
export function messagesOfSession(alias: string, tenant: string, session: string): string {
  return `${alias}.session_uuid = session_uuid(uuid_of(${tenant}), ${session}) AND ${alias}.tenant_id = ${tenant}`;
}
