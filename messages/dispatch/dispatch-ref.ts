/** Names one dispatch. */
export interface DispatchRef {
  tenant_id: string;
  message_id: string;
  dispatch_id: string;
}
