/** The messages of a session, found by their index. @param alias of `messages` @param tenant SQL of type text, as `session` */
export function messagesOfSession(alias: string, tenant: string, session: string): string {
  return `${alias}.session_uuid = session_uuid(uuid_of(${tenant}), ${session}) AND ${alias}.tenant_id = ${tenant}`;
}
