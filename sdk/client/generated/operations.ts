// Generated from contracts/ by `npm run clients`.
import { ApiGroup, type CallOptions, segment } from '../api/api-group.js';
import type { PlatformApi } from '../api/platform-api.js';
import type * as types from './schema-types.js';

/** `/auth`, `/.well-known`: a method for each operation. */
export class AuthOperations extends ApiGroup {
  /**
   * Exchange a client id and secret for an access token. `POST /auth/get_token`. Needs no token.
   */
  getToken(request: types.AuthGetTokenRequest, options: CallOptions = {}): Promise<types.AuthGetTokenResponse> {
    return this.invoke({ path: '/auth/get_token', isPublic: true, retry: true }, request, options);
  }

  /**
   * The public keys that verify tokens of this platform. `GET /.well-known/jwks.json`. Needs no token.
   * An extension of the specification, which may change without notice.
   */
  jwks(options: CallOptions = {}): Promise<types.AuthJwksResponse> {
    return this.invoke({ verb: 'GET', path: '/.well-known/jwks.json', isPublic: true, retry: true, responseAsIs: {"keys":true} }, {}, options);
  }

  /**
   * End all tokens that are limited to a user. `POST /auth/revoke_user`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  revokeUser(request: types.AuthRevokeUserRequest, options: CallOptions = {}): Promise<types.AuthRevokeUserResponse> {
    return this.invoke({ path: '/auth/revoke_user' }, request, options);
  }
}

/** `/credentials`: a method for each operation. */
export class CredentialsOperations extends ApiGroup {
  /**
   * Create a credential; its secret is shown once. `POST /credentials/create`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  create(request: types.CredentialsCreateRequest, options: CallOptions = {}): Promise<types.CredentialsCreateResponse> {
    return this.invoke({ path: '/credentials/create' }, request, options);
  }

  /**
   * List the tenant's credentials. `POST /credentials/get`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  get(request: types.CredentialsGetRequest = {}, options: CallOptions = {}): Promise<types.CredentialsGetResponse> {
    return this.invoke({ path: '/credentials/get', retry: true }, request, options);
  }

  /**
   * Give a credential a new secret. `POST /credentials/rotate`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  rotate(request: types.CredentialsRotateRequest, options: CallOptions = {}): Promise<types.CredentialsRotateResponse> {
    return this.invoke({ path: '/credentials/rotate' }, request, options);
  }

  /**
   * Revoke a credential and its tokens. `POST /credentials/revoke`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  revoke(request: types.CredentialsRevokeRequest, options: CallOptions = {}): Promise<types.CredentialsRevokeResponse> {
    return this.invoke({ path: '/credentials/revoke' }, request, options);
  }
}

/** `/sessions`: a method for each operation. */
export class SessionsOperations extends ApiGroup {
  /**
   * Open a session. `POST /sessions/init`. Needs the scope `read`.
   */
  init(request: types.SessionsInitRequest = {}, options: CallOptions = {}): Promise<types.SessionsInitResponse> {
    return this.invoke({ path: '/sessions/init', requestAsIs: {"metadata":true} }, request, options);
  }

  /**
   * List sessions. `POST /sessions/get`. Needs the scope `read`.
   */
  get(request: types.SessionsGetRequest = {}, options: CallOptions = {}): Promise<types.SessionsGetResponse> {
    return this.invoke({ path: '/sessions/get', retry: true }, request, options);
  }

  /**
   * Read a session. `POST /sessions/get_by_id`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getById(request: types.SessionsGetByIdRequest, options: CallOptions = {}): Promise<types.SessionsGetByIdResponse> {
    return this.invoke({ path: '/sessions/get_by_id', retry: true, responseAsIs: {"session":{"metadata":true}} }, request, options);
  }

  /**
   * Close a session; work in flight is canceled. `POST /sessions/close`. Needs the scope `read`.
   */
  close(request: types.SessionsCloseRequest, options: CallOptions = {}): Promise<types.SessionsCloseResponse> {
    return this.invoke({ path: '/sessions/close' }, request, options);
  }

  /**
   * Cancel what is in flight; the sessions stay usable. `POST /sessions/interrupt`. Needs the scope `read`.
   */
  interrupt(request: types.SessionsInterruptRequest = {}, options: CallOptions = {}): Promise<types.SessionsInterruptResponse> {
    return this.invoke({ path: '/sessions/interrupt' }, request, options);
  }

  /**
   * Add an agent of a type to a session. `POST /sessions/invite`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  invite(request: types.SessionsInviteRequest, options: CallOptions = {}): Promise<types.SessionsInviteResponse> {
    return this.invoke({ path: '/sessions/invite' }, request, options);
  }
}

/** `/messages`: a method for each operation. */
export class MessagesOperations extends ApiGroup {
  /**
   * List messages. `POST /messages/get`. Needs the scope `read`.
   */
  get(request: types.MessagesGetRequest = {}, options: CallOptions = {}): Promise<types.MessagesGetResponse> {
    return this.invoke({ path: '/messages/get', retry: true, responseAsIs: {"messages":{"parts":true,"artifacts":true,"attachments":true,"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true},"taskData":true}} }, request, options);
  }

  /**
   * Read a message. `POST /messages/get_by_id`. Needs the scope `read`.
   */
  getById(request: types.MessagesGetByIdRequest, options: CallOptions = {}): Promise<types.MessagesGetByIdResponse> {
    return this.invoke({ path: '/messages/get_by_id', retry: true, responseAsIs: {"message":{"parts":true,"artifacts":true,"attachments":true,"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true},"taskData":true}} }, request, options);
  }

  /**
   * Cancel a message. `POST /messages/cancel`. Needs the scope `read`.
   */
  cancel(request: types.MessagesCancelRequest, options: CallOptions = {}): Promise<types.MessagesCancelResponse> {
    return this.invoke({ path: '/messages/cancel' }, request, options);
  }

  /**
   * Send a message that failed or was canceled again. `POST /messages/retry`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  retry(request: types.MessagesRetryRequest, options: CallOptions = {}): Promise<types.MessagesRetryResponse> {
    return this.invoke({ path: '/messages/retry' }, request, options);
  }

  /**
   * Messages that wait for a human. `POST /messages/pending`. Needs the scope `read`.
   */
  pending(request: types.MessagesPendingRequest = {}, options: CallOptions = {}): Promise<types.MessagesPendingResponse> {
    return this.invoke({ path: '/messages/pending', retry: true, responseAsIs: {"messages":{"parts":true,"artifacts":true,"attachments":true,"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true},"taskData":true}} }, request, options);
  }

  /**
   * Count messages that are stuck or failed, by what they have in common. `POST /messages/get_groups`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getGroups(request: types.MessagesGetGroupsRequest, options: CallOptions = {}): Promise<types.MessagesGetGroupsResponse> {
    return this.invoke({ path: '/messages/get_groups', retry: true }, request, options);
  }

  /**
   * Messages of each hour: accepted, failed, and how long they took. `POST /messages/get_rates`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getRates(request: types.MessagesGetRatesRequest = {}, options: CallOptions = {}): Promise<types.MessagesGetRatesResponse> {
    return this.invoke({ path: '/messages/get_rates', retry: true }, request, options);
  }

  /**
   * Answer what a message waits for. `POST /messages/{id}/resolve`. Needs no token.
   */
  resolve(id: string, request: types.MessagesResolveRequest, options: CallOptions = {}): Promise<types.MessagesResolveResponse> {
    return this.invoke({ path: `/messages/${segment({ id })}/resolve`, requestAsIs: {"resolution":true,"data":true,"arguments":true}, responseAsIs: {"resolution":true} }, request, options);
  }

  /**
   * Who decided about a message or a plan, for whom it is or with the scope admin. `POST /messages/get_approvals`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getApprovals(request: types.MessagesGetApprovalsRequest = {}, options: CallOptions = {}): Promise<types.MessagesGetApprovalsResponse> {
    return this.invoke({ path: '/messages/get_approvals', retry: true, responseAsIs: {"approvals":{"arguments":true}} }, request, options);
  }

  /**
   * The output of an agent that a guard holds until somebody approves it. `POST /messages/get_held_output`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  getHeldOutput(request: types.MessagesGetHeldOutputRequest, options: CallOptions = {}): Promise<types.MessagesGetHeldOutputResponse> {
    return this.invoke({ path: '/messages/get_held_output', retry: true, responseAsIs: {"output":{"artifacts":true,"statusMessage":{"parts":true,"metadata":true},"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true}}} }, request, options);
  }

  /**
   * All decisions of the tenant as JSON Lines, the oldest first. `POST /messages/export_approvals`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  exportApprovals(request: types.MessagesExportApprovalsRequest = {}, options: CallOptions = {}): AsyncGenerator<types.MessagesExportApprovalsItem> {
    return this.invokeLines({ path: '/messages/export_approvals', responseAsIs: {"arguments":true} }, request, options);
  }
}

/** `/requests`: a method for each operation. */
export class RequestsOperations extends ApiGroup {
  /**
   * List requests to people, about messages and plans. `POST /requests/get`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  get(request: types.RequestsGetRequest = {}, options: CallOptions = {}): Promise<types.RequestsGetResponse> {
    return this.invoke({ path: '/requests/get', retry: true, responseAsIs: {"requests":{"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true}}} }, request, options);
  }

  /**
   * Read a request to people. `POST /requests/get_by_id`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getById(request: types.RequestsGetByIdRequest, options: CallOptions = {}): Promise<types.RequestsGetByIdResponse> {
    return this.invoke({ path: '/requests/get_by_id', retry: true, responseAsIs: {"request":{"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true}}} }, request, options);
  }

  /**
   * Earlier decisions about the same, the newest first. `POST /requests/get_similar`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getSimilar(request: types.RequestsGetSimilarRequest, options: CallOptions = {}): Promise<types.RequestsGetSimilarResponse> {
    return this.invoke({ path: '/requests/get_similar', retry: true, responseAsIs: {"requests":{"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true}}} }, request, options);
  }

  /**
   * Answer many requests, each as by /messages/{id}/resolve. `POST /requests/resolve_many`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  resolveMany(request: types.RequestsResolveManyRequest, options: CallOptions = {}): Promise<types.RequestsResolveManyResponse> {
    return this.invoke({ path: '/requests/resolve_many' }, request, options);
  }

  /**
   * A signed receipt of a decision. `POST /requests/get_receipt`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getReceipt(request: types.RequestsGetReceiptRequest, options: CallOptions = {}): Promise<types.RequestsGetReceiptResponse> {
    return this.invoke({ path: '/requests/get_receipt', retry: true }, request, options);
  }
}

/** `/agents`: a method for each operation. */
export class AgentsOperations extends ApiGroup {
  /**
   * Register an agent, or register it again. `POST /agents/register`. Scope read with a token that stands for the agent's type; any other token needs full.
   */
  register(request: types.AgentsRegisterRequest, options: CallOptions = {}): Promise<types.AgentsRegisterResponse> {
    return this.invoke({ path: '/agents/register', requestAsIs: {"agentCard":true,"skills":true,"tools":{"inputSchema":true},"context":true}, responseAsIs: {"agent":{"agentCard":true,"context":true}} }, request, options);
  }

  /**
   * Report that an agent is alive. `POST /agents/heartbeat`. Scope read with a token that stands for the agent's type; any other token needs admin.
   */
  heartbeat(request: types.AgentsHeartbeatRequest, options: CallOptions = {}): Promise<types.AgentsHeartbeatResponse> {
    return this.invoke({ path: '/agents/heartbeat', retry: true }, request, options);
  }

  /**
   * List agents. `POST /agents/get`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  get(request: types.AgentsGetRequest = {}, options: CallOptions = {}): Promise<types.AgentsGetResponse> {
    return this.invoke({ path: '/agents/get', retry: true, responseAsIs: {"agents":{"agentCard":true,"context":true}} }, request, options);
  }

  /**
   * What each agent type has to do, and how it fares. `POST /agents/get_types`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getTypes(options: CallOptions = {}): Promise<types.AgentsGetTypesResponse> {
    return this.invoke({ path: '/agents/get_types', retry: true }, {}, options);
  }

  /**
   * Read an agent. `POST /agents/get_by_id`. Needs the scope `read`.
   */
  getById(request: types.AgentsGetByIdRequest, options: CallOptions = {}): Promise<types.AgentsGetByIdResponse> {
    return this.invoke({ path: '/agents/get_by_id', retry: true, responseAsIs: {"agent":{"agentCard":true,"context":true}} }, request, options);
  }

  /**
   * Take an agent out: no new work, sessions unbound. `POST /agents/deregister`. Scope read with a token that stands for the agent's type; any other token needs admin.
   */
  deregister(request: types.AgentsDeregisterRequest, options: CallOptions = {}): Promise<types.AgentsDeregisterResponse> {
    return this.invoke({ path: '/agents/deregister' }, request, options);
  }

  /**
   * Send an agent nothing new until /agents/undrain, whatever it reports. `POST /agents/drain`. Scope read with a token that stands for the agent's type; any other token needs admin.
   * An extension of the specification, which may change without notice.
   */
  drain(request: types.AgentsDrainRequest, options: CallOptions = {}): Promise<types.AgentsDrainResponse> {
    return this.invoke({ path: '/agents/drain' }, request, options);
  }

  /**
   * Let an agent that was drained take messages again. `POST /agents/undrain`. Scope read with a token that stands for the agent's type; any other token needs admin.
   * An extension of the specification, which may change without notice.
   */
  undrain(request: types.AgentsUndrainRequest, options: CallOptions = {}): Promise<types.AgentsUndrainResponse> {
    return this.invoke({ path: '/agents/undrain' }, request, options);
  }

  /**
   * Read how an agent is reached, and how its dispatches fared. `POST /agents/get_connection`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getConnection(request: types.AgentsGetConnectionRequest, options: CallOptions = {}): Promise<types.AgentsGetConnectionResponse> {
    return this.invoke({ path: '/agents/get_connection', retry: true }, request, options);
  }

  /**
   * Count agents by mode, status and transport. `POST /agents/get_connection_stats`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getConnectionStats(request: types.AgentsGetConnectionStatsRequest = {}, options: CallOptions = {}): Promise<types.AgentsGetConnectionStatsResponse> {
    return this.invoke({ path: '/agents/get_connection_stats', retry: true, responseAsIs: {"stats":{"byDeploymentMode":{"*":{}},"byStatus":{"*":{}}}} }, request, options);
  }

  /**
   * Put an agent type on the list of those that may join; without a list every type may. `POST /agents/allow_type`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  allowType(request: types.AgentsAllowTypeRequest, options: CallOptions = {}): Promise<types.AgentsAllowTypeResponse> {
    return this.invoke({ path: '/agents/allow_type', retry: true }, request, options);
  }

  /**
   * Keep an agent type out and deregister its instances. `POST /agents/disallow_type`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  disallowType(request: types.AgentsDisallowTypeRequest, options: CallOptions = {}): Promise<types.AgentsDisallowTypeResponse> {
    return this.invoke({ path: '/agents/disallow_type', retry: true }, request, options);
  }

  /**
   * Set the agent type that gets messages which name no target. `POST /agents/set_default`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  setDefault(request: types.AgentsSetDefaultRequest, options: CallOptions = {}): Promise<types.AgentsSetDefaultResponse> {
    return this.invoke({ path: '/agents/set_default', retry: true }, request, options);
  }
}

/** `/tools`: a method for each operation. */
export class ToolsOperations extends ApiGroup {
  /**
   * List the tools that registered agents and the platform offer. `POST /tools/get`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  get(options: CallOptions = {}): Promise<types.ToolsGetResponse> {
    return this.invoke({ path: '/tools/get', retry: true, responseAsIs: {"tools":{"inputSchema":true}} }, {}, options);
  }

  /**
   * Say which agent types may offer a tool. `POST /tools/set_owner`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  setOwner(request: types.ToolsSetOwnerRequest, options: CallOptions = {}): Promise<types.ToolsSetOwnerResponse> {
    return this.invoke({ path: '/tools/set_owner', retry: true }, request, options);
  }

  /**
   * Call a tool of another agent, or of the platform, on behalf of an agent without a socket. `POST /tools/call`. Scope read with a token that stands for the agent's type; any other token needs full.
   * An extension of the specification, which may change without notice.
   */
  call(request: types.ToolsCallRequest, options: CallOptions = {}): Promise<types.ToolsCallResponse> {
    return this.invoke({ path: '/tools/call', requestAsIs: {"arguments":true}, responseAsIs: {"result":true} }, request, options);
  }
}

/** `/plans`: a method for each operation. */
export class PlansOperations extends ApiGroup {
  /**
   * Propose a plan: a graph of steps, each of which is a message to an agent. `POST /plans/create`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  create(request: types.PlansCreateRequest, options: CallOptions = {}): Promise<types.PlansCreateResponse> {
    return this.invoke({ path: '/plans/create', requestAsIs: {"steps":{"message":true}}, responseAsIs: {"plan":{"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true},"decisions":{"arguments":true},"steps":{"message":true}}} }, request, options);
  }

  /**
   * List plans. `POST /plans/get`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  get(request: types.PlansGetRequest = {}, options: CallOptions = {}): Promise<types.PlansGetResponse> {
    return this.invoke({ path: '/plans/get', retry: true }, request, options);
  }

  /**
   * Read a plan with its steps. `POST /plans/get_by_id`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getById(request: types.PlansGetByIdRequest, options: CallOptions = {}): Promise<types.PlansGetByIdResponse> {
    return this.invoke({ path: '/plans/get_by_id', retry: true, responseAsIs: {"plan":{"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true},"decisions":{"arguments":true},"steps":{"message":true}}} }, request, options);
  }

  /**
   * Approve a proposed plan, which then starts; needs the scope admin, or to be an approver. `POST /plans/approve`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  approve(request: types.PlansApproveRequest, options: CallOptions = {}): Promise<types.PlansApproveResponse> {
    return this.invoke({ path: '/plans/approve', responseAsIs: {"plan":{"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true},"decisions":{"arguments":true},"steps":{"message":true}}} }, request, options);
  }

  /**
   * Reject a proposed plan; needs the scope admin, or to be an approver. `POST /plans/reject`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  reject(request: types.PlansRejectRequest, options: CallOptions = {}): Promise<types.PlansRejectResponse> {
    return this.invoke({ path: '/plans/reject', responseAsIs: {"plan":{"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true},"decisions":{"arguments":true},"steps":{"message":true}}} }, request, options);
  }

  /**
   * Cancel a plan with the messages of its steps. `POST /plans/cancel`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  cancel(request: types.PlansCancelRequest, options: CallOptions = {}): Promise<types.PlansCancelResponse> {
    return this.invoke({ path: '/plans/cancel', responseAsIs: {"plan":{"inputRequest":{"schema":true,"fields":{"options":true},"arguments":true},"decisions":{"arguments":true},"steps":{"message":true}}} }, request, options);
  }
}

/** `/policies`: a method for each operation. */
export class PoliciesOperations extends ApiGroup {
  /**
   * Create a policy. `POST /policies/create_policy`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  createPolicy(request: types.PoliciesCreatePolicyRequest, options: CallOptions = {}): Promise<types.PoliciesCreatePolicyResponse> {
    return this.invoke({ path: '/policies/create_policy' }, request, options);
  }

  /**
   * List policies. `POST /policies/get_policies`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  getPolicies(request: types.PoliciesGetPoliciesRequest = {}, options: CallOptions = {}): Promise<types.PoliciesGetPoliciesResponse> {
    return this.invoke({ path: '/policies/get_policies', retry: true }, request, options);
  }

  /**
   * Read a policy. `POST /policies/get_policy_by_id`. Needs the scope `admin`.
   */
  getPolicyById(request: types.PoliciesGetPolicyByIdRequest, options: CallOptions = {}): Promise<types.PoliciesGetPolicyByIdResponse> {
    return this.invoke({ path: '/policies/get_policy_by_id', retry: true }, request, options);
  }

  /**
   * Change a policy; only given fields change. `POST /policies/update_policy`. Needs the scope `admin`.
   */
  updatePolicy(request: types.PoliciesUpdatePolicyRequest, options: CallOptions = {}): Promise<types.PoliciesUpdatePolicyResponse> {
    return this.invoke({ path: '/policies/update_policy', retry: true }, request, options);
  }

  /**
   * Delete a policy. `POST /policies/delete_policy`. Needs the scope `admin`.
   */
  deletePolicy(request: types.PoliciesDeletePolicyRequest, options: CallOptions = {}): Promise<types.PoliciesDeletePolicyResponse> {
    return this.invoke({ path: '/policies/delete_policy' }, request, options);
  }

  /**
   * Decide without consequences, and say why. `POST /policies/test_policy`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  testPolicy(request: types.PoliciesTestPolicyRequest, options: CallOptions = {}): Promise<types.PoliciesTestPolicyResponse> {
    return this.invoke({ path: '/policies/test_policy', retry: true, requestAsIs: {"arguments":true} }, request, options);
  }

  /**
   * What a policy would have decided about the past. `POST /policies/backtest`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  backtest(request: types.PoliciesBacktestRequest, options: CallOptions = {}): Promise<types.PoliciesBacktestResponse> {
    return this.invoke({ path: '/policies/backtest', retry: true, responseAsIs: {"samples":{"arguments":true}} }, request, options);
  }

  /**
   * The guards and their settings. `POST /policies/get_guards`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  getGuards(request: types.PoliciesGetGuardsRequest = {}, options: CallOptions = {}): Promise<types.PoliciesGetGuardsResponse> {
    return this.invoke({ path: '/policies/get_guards', retry: true }, request, options);
  }

  /**
   * Change a guard. `POST /policies/update_guard`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  updateGuard(request: types.PoliciesUpdateGuardRequest, options: CallOptions = {}): Promise<types.PoliciesUpdateGuardResponse> {
    return this.invoke({ path: '/policies/update_guard', retry: true }, request, options);
  }

  /**
   * Create an alert rule. `POST /policies/new_alert`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  newAlert(request: types.PoliciesNewAlertRequest, options: CallOptions = {}): Promise<types.PoliciesNewAlertResponse> {
    return this.invoke({ path: '/policies/new_alert', requestAsIs: {"condition":{"filters":{"*":{}}},"notifications":{"config":{"headers":{"*":{}}},"receiver":true}}, responseAsIs: {"condition":{"filters":true}} }, request, options);
  }

  /**
   * List alert rules. `POST /policies/get_alerts`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  getAlerts(request: types.PoliciesGetAlertsRequest = {}, options: CallOptions = {}): Promise<types.PoliciesGetAlertsResponse> {
    return this.invoke({ path: '/policies/get_alerts', retry: true, responseAsIs: {"rules":{"condition":{"filters":true}}} }, request, options);
  }

  /**
   * Read an alert rule. `POST /policies/get_alert_by_id`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  getAlertById(request: types.PoliciesGetAlertByIdRequest, options: CallOptions = {}): Promise<types.PoliciesGetAlertByIdResponse> {
    return this.invoke({ path: '/policies/get_alert_by_id', retry: true, responseAsIs: {"condition":{"filters":true}} }, request, options);
  }

  /**
   * Change an alert rule; only given fields change. `POST /policies/update_alert`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  updateAlert(request: types.PoliciesUpdateAlertRequest, options: CallOptions = {}): Promise<types.PoliciesUpdateAlertResponse> {
    return this.invoke({ path: '/policies/update_alert', retry: true, requestAsIs: {"condition":{"filters":{"*":{}}},"notifications":{"config":{"headers":{"*":{}}},"receiver":true}}, responseAsIs: {"condition":{"filters":true}} }, request, options);
  }

  /**
   * Delete an alert rule; it sends nothing more. `POST /policies/delete_alert`. Needs the scope `admin`.
   */
  deleteAlert(request: types.PoliciesDeleteAlertRequest, options: CallOptions = {}): Promise<types.PoliciesDeleteAlertResponse> {
    return this.invoke({ path: '/policies/delete_alert' }, request, options);
  }

  /**
   * Send a test notification to every channel of a rule. `POST /policies/test_alert`. Needs the scope `admin`.
   */
  testAlert(request: types.PoliciesTestAlertRequest, options: CallOptions = {}): Promise<types.PoliciesTestAlertResponse> {
    return this.invoke({ path: '/policies/test_alert' }, request, options);
  }
}

/** `/webhooks`: a method for each operation. */
export class WebhooksOperations extends ApiGroup {
  /**
   * List deliveries with their attempts, newest first. `POST /webhooks/get_deliveries`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  getDeliveries(request: types.WebhooksGetDeliveriesRequest = {}, options: CallOptions = {}): Promise<types.WebhooksGetDeliveriesResponse> {
    return this.invoke({ path: '/webhooks/get_deliveries', retry: true }, request, options);
  }

  /**
   * Send a delivery again under the same delivery_id. `POST /webhooks/redeliver`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  redeliver(request: types.WebhooksRedeliverRequest, options: CallOptions = {}): Promise<types.WebhooksRedeliverResponse> {
    return this.invoke({ path: '/webhooks/redeliver' }, request, options);
  }
}

/** `/slack`: a method for each operation. */
export class SlackOperations extends ApiGroup {
  /**
   * A button pressed in Slack; verified by Slack's signature. `POST /slack/interactions`. Needs no token.
   * An extension of the specification, which may change without notice.
   */
  interactions(request: types.SlackInteractionsRequest, options: CallOptions = {}): Promise<types.SlackInteractionsResponse> {
    return this.invoke({ path: '/slack/interactions', form: true, isPublic: true }, request, options);
  }
}

/** `/telemetry`: a method for each operation. */
export class TelemetryOperations extends ApiGroup {
  /**
   * List events. `POST /telemetry/get_events`. Needs the scope `read`.
   */
  getEvents(request: types.TelemetryGetEventsRequest = {}, options: CallOptions = {}): Promise<types.TelemetryGetEventsResponse> {
    return this.invoke({ path: '/telemetry/get_events', retry: true }, request, options);
  }

  /**
   * Follow events as they happen (server-sent events). `POST /telemetry/stream_events`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  streamEvents(request: types.TelemetryStreamEventsRequest = {}, options: CallOptions = {}): AsyncGenerator<types.TelemetryStreamEventsItem> {
    return this.invokeStream({ path: '/telemetry/stream_events' }, request, options);
  }

  /**
   * Follow events, with the filters in the query. `GET /telemetry/stream_events`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  streamEventsByQuery(request: types.TelemetryStreamEventsByQueryRequest = {}, options: CallOptions = {}): AsyncGenerator<types.TelemetryStreamEventsByQueryItem> {
    return this.invokeStream({ verb: 'GET', path: '/telemetry/stream_events', retry: true }, request, options);
  }

  /**
   * List traces, or read one with its spans. `POST /telemetry/get_traces`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getTraces(request: types.TelemetryGetTracesRequest = {}, options: CallOptions = {}): Promise<types.TelemetryGetTracesResponse> {
    return this.invoke({ path: '/telemetry/get_traces', retry: true, responseAsIs: {"trace":{"spans":{"attributes":{"*":{}}}}} }, request, options);
  }

  /**
   * What agents used: messages, tool calls, tokens, time and cost. `POST /telemetry/get_usage`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getUsage(request: types.TelemetryGetUsageRequest = {}, options: CallOptions = {}): Promise<types.TelemetryGetUsageResponse> {
    return this.invoke({ path: '/telemetry/get_usage', retry: true }, request, options);
  }
}

/** `/tenants`: a method for each operation. */
export class TenantsOperations extends ApiGroup {
  /**
   * Create a tenant, with its first credential if asked. `POST /tenants/create`. Needs the scope `operator`.
   * An extension of the specification, which may change without notice.
   */
  create(request: types.TenantsCreateRequest, options: CallOptions = {}): Promise<types.TenantsCreateResponse> {
    return this.invoke({ path: '/tenants/create' }, request, options);
  }

  /**
   * List the tenants, newest first. `POST /tenants/get`. Needs the scope `operator`.
   * An extension of the specification, which may change without notice.
   */
  get(request: types.TenantsGetRequest = {}, options: CallOptions = {}): Promise<types.TenantsGetResponse> {
    return this.invoke({ path: '/tenants/get', retry: true }, request, options);
  }

  /**
   * Read a tenant. `POST /tenants/get_by_id`. Needs the scope `operator`.
   * An extension of the specification, which may change without notice.
   */
  getById(request: types.TenantsGetByIdRequest, options: CallOptions = {}): Promise<types.TenantsGetByIdResponse> {
    return this.invoke({ path: '/tenants/get_by_id', retry: true }, request, options);
  }

  /**
   * Change a tenant; only given fields change. `POST /tenants/update`. Needs the scope `operator`.
   * An extension of the specification, which may change without notice.
   */
  update(request: types.TenantsUpdateRequest, options: CallOptions = {}): Promise<types.TenantsUpdateResponse> {
    return this.invoke({ path: '/tenants/update', retry: true }, request, options);
  }

  /**
   * Delete a tenant: its tokens end, and all that it has is erased. `POST /tenants/delete`. Needs the scope `operator`.
   * An extension of the specification, which may change without notice.
   */
  delete(request: types.TenantsDeleteRequest, options: CallOptions = {}): Promise<types.TenantsDeleteResponse> {
    return this.invoke({ path: '/tenants/delete' }, request, options);
  }

  /**
   * The quotas of the tenant, and what has been used of them. `POST /tenants/get_limits`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  getLimits(options: CallOptions = {}): Promise<types.TenantsGetLimitsResponse> {
    return this.invoke({ path: '/tenants/get_limits', retry: true }, {}, options);
  }

  /**
   * Set quotas; null removes one. `POST /tenants/set_limits`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  setLimits(request: types.TenantsSetLimitsRequest = {}, options: CallOptions = {}): Promise<types.TenantsSetLimitsResponse> {
    return this.invoke({ path: '/tenants/set_limits', retry: true }, request, options);
  }

  /**
   * The tenant's prices of models. `POST /tenants/get_prices`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  getPrices(options: CallOptions = {}): Promise<types.TenantsGetPricesResponse> {
    return this.invoke({ path: '/tenants/get_prices', retry: true }, {}, options);
  }

  /**
   * Set the price of a model, for what is used from then on. `POST /tenants/set_prices`. Needs the scope `full`.
   * An extension of the specification, which may change without notice.
   */
  setPrices(request: types.TenantsSetPricesRequest, options: CallOptions = {}): Promise<types.TenantsSetPricesResponse> {
    return this.invoke({ path: '/tenants/set_prices', retry: true }, request, options);
  }
}

/** `/audit`: a method for each operation. */
export class AuditOperations extends ApiGroup {
  /**
   * Who administered what, and who decided what; as JSON Lines too. `POST /audit/get`. Needs the scope `admin`.
   * An extension of the specification, which may change without notice.
   */
  get(request: types.AuditGetRequest = {}, options: CallOptions = {}): Promise<types.AuditGetResponse> {
    return this.invoke({ path: '/audit/get', retry: true, responseAsIs: {"entries":{"before":true,"after":true}} }, request, options);
  }
}

/** `/knowledge_base`: a method for each operation. */
export class KnowledgeOperations extends ApiGroup {
  /**
   * Create a knowledge base, with documents if given. `POST /knowledge_base/new`. Needs the scope `full`.
   */
  new(request: types.KnowledgeNewRequest, options: CallOptions = {}): Promise<types.KnowledgeNewResponse> {
    return this.invoke({ path: '/knowledge_base/new', requestAsIs: {"documents":{"metadata":true}} }, request, options);
  }

  /**
   * List knowledge bases. `POST /knowledge_base/get`. Needs the scope `read`.
   */
  get(request: types.KnowledgeGetRequest = {}, options: CallOptions = {}): Promise<types.KnowledgeGetResponse> {
    return this.invoke({ path: '/knowledge_base/get', retry: true }, request, options);
  }

  /**
   * Read a knowledge base. `POST /knowledge_base/get_by_id`. Needs the scope `read`.
   */
  getById(request: types.KnowledgeGetByIdRequest, options: CallOptions = {}): Promise<types.KnowledgeGetByIdResponse> {
    return this.invoke({ path: '/knowledge_base/get_by_id', retry: true }, request, options);
  }

  /**
   * Change a knowledge base; only given fields change. `POST /knowledge_base/update`. Needs the scope `full`.
   */
  update(request: types.KnowledgeUpdateRequest, options: CallOptions = {}): Promise<types.KnowledgeUpdateResponse> {
    return this.invoke({ path: '/knowledge_base/update', retry: true }, request, options);
  }

  /**
   * Delete a knowledge base and all its data. `POST /knowledge_base/delete`. Needs the scope `full`.
   */
  delete(request: types.KnowledgeDeleteRequest, options: CallOptions = {}): Promise<types.KnowledgeDeleteResponse> {
    return this.invoke({ path: '/knowledge_base/delete' }, request, options);
  }

  /**
   * Take in documents, as a job where they are large. `POST /knowledge_base/ingest`. Needs the scope `full`.
   */
  ingest(request: types.KnowledgeIngestRequest, options: CallOptions = {}): Promise<types.KnowledgeIngestResponse> {
    return this.invoke({ path: '/knowledge_base/ingest', retry: true, requestAsIs: {"metadata":true,"documents":{"metadata":true}} }, request, options);
  }

  /**
   * Search knowledge bases; results carry citations. `POST /knowledge_base/query`. Needs the scope `read`.
   */
  query(request: types.KnowledgeQueryRequest, options: CallOptions = {}): Promise<types.KnowledgeQueryResponse> {
    return this.invoke({ path: '/knowledge_base/query', retry: true, requestAsIs: {"filters":{"metadata":true}}, responseAsIs: {"results":{"metadata":true}} }, request, options);
  }

  /**
   * Fetch sources again, and embed stale ones anew. `POST /knowledge_base/refresh`. Needs the scope `full`.
   */
  refresh(request: types.KnowledgeRefreshRequest, options: CallOptions = {}): Promise<types.KnowledgeRefreshResponse> {
    return this.invoke({ path: '/knowledge_base/refresh', retry: true }, request, options);
  }

  /**
   * Count what a knowledge base holds. `POST /knowledge_base/get_stats`. Needs the scope `read`.
   */
  getStats(request: types.KnowledgeGetStatsRequest, options: CallOptions = {}): Promise<types.KnowledgeGetStatsResponse> {
    return this.invoke({ path: '/knowledge_base/get_stats', retry: true }, request, options);
  }

  /**
   * List the sources of a knowledge base. `POST /knowledge_base/get_sources`. Needs the scope `read`.
   */
  getSources(request: types.KnowledgeGetSourcesRequest, options: CallOptions = {}): Promise<types.KnowledgeGetSourcesResponse> {
    return this.invoke({ path: '/knowledge_base/get_sources', retry: true, responseAsIs: {"sources":{"metadata":true}} }, request, options);
  }

  /**
   * Delete a source and all its chunks. `POST /knowledge_base/delete_source`. Needs the scope `full`.
   */
  deleteSource(request: types.KnowledgeDeleteSourceRequest, options: CallOptions = {}): Promise<types.KnowledgeDeleteSourceResponse> {
    return this.invoke({ path: '/knowledge_base/delete_source' }, request, options);
  }

  /**
   * List the jobs of a knowledge base. `POST /knowledge_base/get_jobs`. Needs the scope `read`.
   * An extension of the specification, which may change without notice.
   */
  getJobs(request: types.KnowledgeGetJobsRequest, options: CallOptions = {}): Promise<types.KnowledgeGetJobsResponse> {
    return this.invoke({ path: '/knowledge_base/get_jobs', retry: true }, request, options);
  }

  /**
   * Read how far a job is. `POST /knowledge_base/get_status`. Needs the scope `read`.
   */
  getStatus(request: types.KnowledgeGetStatusRequest, options: CallOptions = {}): Promise<types.KnowledgeGetStatusResponse> {
    return this.invoke({ path: '/knowledge_base/get_status', retry: true }, request, options);
  }
}

/** `/health`, `/.well-known`, `/a2a`, `/platform`, `/openapi.json`: a method for each operation. */
export class PlatformOperations extends ApiGroup {
  /**
   * Health of the platform. `GET /health`. Needs no token.
   */
  health(request: types.PlatformHealthRequest = {}, options: CallOptions = {}): Promise<types.PlatformHealthResponse> {
    return this.invoke({ verb: 'GET', path: '/health', isPublic: true, retry: true }, request, options);
  }

  /**
   * The A2A agent card: 0.3, or 1.0 by A2A-Version; with a token, the skills of its fleet. `GET /.well-known/agent-card.json`. Needs no token.
   */
  agentCard(options: CallOptions = {}): Promise<types.PlatformAgentCardResponse> {
    return this.invoke({ verb: 'GET', path: '/.well-known/agent-card.json', retry: true, responseAsIs: {"securitySchemes":{"*":{}},"security":{"*":{}},"securityRequirements":{"schemes":{"*":{}}}} }, {}, options);
  }

  /**
   * The A2A agent card of an agent type: 0.3, or 1.0 by A2A-Version; with a token, the skills of its agents. `GET /a2a/{agent_type}/.well-known/agent-card.json`. Needs no token.
   * An extension of the specification, which may change without notice.
   */
  agentTypeCard(agentType: string, options: CallOptions = {}): Promise<types.PlatformAgentTypeCardResponse> {
    return this.invoke({ verb: 'GET', path: `/a2a/${segment({ agentType })}/.well-known/agent-card.json`, retry: true, responseAsIs: {"securitySchemes":{"*":{}},"security":{"*":{}},"securityRequirements":{"schemes":{"*":{}}}} }, {}, options);
  }

  /**
   * The health of the platform with its nodes. `POST /platform/get_health`. Needs the scope `operator`.
   * An extension of the specification, which may change without notice.
   */
  getHealth(options: CallOptions = {}): Promise<types.PlatformGetHealthResponse> {
    return this.invoke({ path: '/platform/get_health', retry: true }, {}, options);
  }

  /**
   * This description. `GET /openapi.json`. Needs no token.
   * An extension of the specification, which may change without notice.
   */
  openapi(options: CallOptions = {}): Promise<types.PlatformOpenapiResponse> {
    return this.invoke({ verb: 'GET', path: '/openapi.json', isPublic: true, retry: true, responseAsIs: true }, {}, options);
  }
}

/** The operations of the platform's API: the first word of a path is a property, the rest is its method. */
export class Operations {
  readonly auth: AuthOperations;
  readonly credentials: CredentialsOperations;
  readonly sessions: SessionsOperations;
  readonly messages: MessagesOperations;
  readonly requests: RequestsOperations;
  readonly agents: AgentsOperations;
  readonly tools: ToolsOperations;
  readonly plans: PlansOperations;
  readonly policies: PoliciesOperations;
  readonly webhooks: WebhooksOperations;
  readonly slack: SlackOperations;
  readonly telemetry: TelemetryOperations;
  readonly tenants: TenantsOperations;
  readonly audit: AuditOperations;
  readonly knowledge: KnowledgeOperations;
  readonly platform: PlatformOperations;

  constructor(api: PlatformApi) {
    this.auth = new AuthOperations(api);
    this.credentials = new CredentialsOperations(api);
    this.sessions = new SessionsOperations(api);
    this.messages = new MessagesOperations(api);
    this.requests = new RequestsOperations(api);
    this.agents = new AgentsOperations(api);
    this.tools = new ToolsOperations(api);
    this.plans = new PlansOperations(api);
    this.policies = new PoliciesOperations(api);
    this.webhooks = new WebhooksOperations(api);
    this.slack = new SlackOperations(api);
    this.telemetry = new TelemetryOperations(api);
    this.tenants = new TenantsOperations(api);
    this.audit = new AuditOperations(api);
    this.knowledge = new KnowledgeOperations(api);
    this.platform = new PlatformOperations(api);
  }
}
