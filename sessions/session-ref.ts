/** A session, named. */
export interface SessionRef {
  tenant_id: string;
  session_id: string;
}
