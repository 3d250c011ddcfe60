# Generated from contracts/ by `npm run clients`.
# ruff: noqa
# mypy: disable-error-code="redundant-cast"

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, cast
from urllib.parse import quote

from ..not_given import NOT_GIVEN, NotGiven, given
from ..platform_api import PlatformApi
from .models import (
    AgentsAllowTypeResponse,
    AgentsDeregisterResponse,
    AgentsDisallowTypeResponse,
    AgentsDrainResponse,
    AgentsGetByIdResponse,
    AgentsGetConnectionResponse,
    AgentsGetConnectionStatsResponse,
    AgentsGetResponse,
    AgentsGetTypesResponse,
    AgentsHeartbeatRequest,
    AgentsHeartbeatResponse,
    AgentsRegisterRequestDispatchAuth,
    AgentsRegisterRequestDispatchAuth1,
    AgentsRegisterRequestDispatchAuth2,
    AgentsRegisterRequestSkill,
    AgentsRegisterRequestTools,
    AgentsRegisterResponse,
    AgentsSetDefaultResponse,
    AgentsUndrainResponse,
    AuditGetResponse,
    AuthGetTokenResponse,
    AuthJwksResponse,
    AuthRevokeUserResponse,
    CredentialsCreateResponse,
    CredentialsGetResponse,
    CredentialsRevokeResponse,
    CredentialsRotateResponse,
    KnowledgeDeleteResponse,
    KnowledgeDeleteSourceResponse,
    KnowledgeGetByIdResponse,
    KnowledgeGetJobsResponse,
    KnowledgeGetResponse,
    KnowledgeGetSourcesResponse,
    KnowledgeGetStatsResponse,
    KnowledgeGetStatusResponse,
    KnowledgeIngestRequestDocument,
    KnowledgeIngestResponse,
    KnowledgeNewRequestConfig,
    KnowledgeNewRequestDocument,
    KnowledgeNewResponse,
    KnowledgeQueryRequestFilters,
    KnowledgeQueryResponse,
    KnowledgeRefreshResponse,
    KnowledgeUpdateRequestConfig,
    KnowledgeUpdateResponse,
    MessagesCancelResponse,
    MessagesExportApprovalsItem,
    MessagesGetApprovalsResponse,
    MessagesGetByIdResponse,
    MessagesGetGroupsResponse,
    MessagesGetHeldOutputResponse,
    MessagesGetRatesResponse,
    MessagesGetResponse,
    MessagesPendingResponse,
    MessagesResolveResponse,
    MessagesRetryResponse,
    PlansApproveResponse,
    PlansCancelResponse,
    PlansCreateRequestStep,
    PlansCreateResponse,
    PlansGetByIdResponse,
    PlansGetResponse,
    PlansRejectResponse,
    PlatformAgentCardResponse,
    PlatformAgentTypeCardResponse,
    PlatformGetHealthResponse,
    PlatformHealthResponse,
    PlatformOpenapiResponse,
    PoliciesBacktestRequestPolicy,
    PoliciesBacktestResponse,
    PoliciesCreatePolicyRequestEvaluator,
    PoliciesCreatePolicyRequestEvaluator1,
    PoliciesCreatePolicyRequestEvaluator2,
    PoliciesCreatePolicyRequestMatch,
    PoliciesCreatePolicyResponse,
    PoliciesDeleteAlertResponse,
    PoliciesDeletePolicyResponse,
    PoliciesGetAlertByIdResponse,
    PoliciesGetAlertsResponse,
    PoliciesGetGuardsResponse,
    PoliciesGetPoliciesResponse,
    PoliciesGetPolicyByIdResponse,
    PoliciesNewAlertRequestCondition,
    PoliciesNewAlertRequestNotifications,
    PoliciesNewAlertRequestNotifications1,
    PoliciesNewAlertRequestNotifications2,
    PoliciesNewAlertResponse,
    PoliciesTestAlertResponse,
    PoliciesTestPolicyResponse,
    PoliciesUpdateAlertRequestCondition,
    PoliciesUpdateAlertRequestNotifications,
    PoliciesUpdateAlertRequestNotifications1,
    PoliciesUpdateAlertRequestNotifications2,
    PoliciesUpdateAlertResponse,
    PoliciesUpdateGuardRequest,
    PoliciesUpdateGuardResponse,
    PoliciesUpdatePolicyRequestEvaluator,
    PoliciesUpdatePolicyRequestEvaluator1,
    PoliciesUpdatePolicyRequestEvaluator2,
    PoliciesUpdatePolicyRequestMatch,
    PoliciesUpdatePolicyResponse,
    RequestsGetByIdResponse,
    RequestsGetReceiptResponse,
    RequestsGetResponse,
    RequestsGetSimilarResponse,
    RequestsResolveManyResponse,
    SessionsCloseResponse,
    SessionsGetByIdResponse,
    SessionsGetResponse,
    SessionsInitResponse,
    SessionsInterruptResponse,
    SessionsInviteResponse,
    SlackInteractionsResponse,
    TelemetryGetEventsResponse,
    TelemetryGetTracesResponse,
    TelemetryGetUsageResponse,
    TelemetryStreamEventsItem,
    TenantsCreateRequestCredential,
    TenantsCreateRequestLimits,
    TenantsCreateResponse,
    TenantsDeleteResponse,
    TenantsGetByIdResponse,
    TenantsGetLimitsResponse,
    TenantsGetPricesResponse,
    TenantsGetResponse,
    TenantsSetLimitsRequestPerAgentType,
    TenantsSetLimitsRequestPerCredential,
    TenantsSetLimitsRequestPerUser,
    TenantsSetLimitsResponse,
    TenantsSetPricesResponse,
    TenantsUpdateRequestLimits,
    TenantsUpdateResponse,
    ToolsCallRequestTarget,
    ToolsCallResponse,
    ToolsGetResponse,
    ToolsSetOwnerResponse,
    WebhooksGetDeliveriesResponse,
    WebhooksRedeliverResponse,
)


class AuthOperations:
    """The operations of `client.auth`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def get_token(self, client_id: str, *, client_secret: str, agent_type: str | NotGiven = NOT_GIVEN, tenant_id: str | NotGiven = NOT_GIVEN, scopes: list[Literal['read', 'admin', 'full']] | NotGiven = NOT_GIVEN, expires_in: int | NotGiven = NOT_GIVEN, user_id: str | NotGiven = NOT_GIVEN, session_id: str | NotGiven = NOT_GIVEN, agent_types: list[str] | NotGiven = NOT_GIVEN) -> AuthGetTokenResponse:
        """Exchange a client id and secret for an access token. `POST /auth/get_token`. Needs no token."""
        return cast("AuthGetTokenResponse", await self._api.call("/auth/get_token", given(client_id=client_id, client_secret=client_secret, agent_type=agent_type, tenant_id=tenant_id, scopes=scopes, expires_in=expires_in, user_id=user_id, session_id=session_id, agent_types=agent_types), retry=True))

    async def jwks(self) -> AuthJwksResponse:
        """The public keys that verify tokens of this platform. `GET /.well-known/jwks.json`. Needs no token.

        An extension of the specification, which may change without notice."""
        return cast("AuthJwksResponse", await self._api.call("/.well-known/jwks.json", params=given(), method="GET", retry=True))

    async def revoke_user(self, user_id: str) -> AuthRevokeUserResponse:
        """End all tokens that are limited to a user. `POST /auth/revoke_user`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("AuthRevokeUserResponse", await self._api.call("/auth/revoke_user", given(user_id=user_id)))


class CredentialsOperations:
    """The operations of `client.credentials`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def create(self, name: str, *, scopes: list[Literal['read', 'admin', 'full']], agent_types: list[Literal['*'] | str] | NotGiven = NOT_GIVEN, expires_at: str | NotGiven = NOT_GIVEN) -> CredentialsCreateResponse:
        """Create a credential; its secret is shown once. `POST /credentials/create`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("CredentialsCreateResponse", await self._api.call("/credentials/create", given(name=name, scopes=scopes, agent_types=agent_types, expires_at=expires_at)))

    async def get(self, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN) -> CredentialsGetResponse:
        """List the tenant's credentials. `POST /credentials/get`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("CredentialsGetResponse", await self._api.call("/credentials/get", given(page=page, page_size=page_size), retry=True))

    async def rotate(self, credential_id: str, *, overlap_seconds: int | NotGiven = NOT_GIVEN) -> CredentialsRotateResponse:
        """Give a credential a new secret. `POST /credentials/rotate`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("CredentialsRotateResponse", await self._api.call("/credentials/rotate", given(credential_id=credential_id, overlap_seconds=overlap_seconds)))

    async def revoke(self, credential_id: str) -> CredentialsRevokeResponse:
        """Revoke a credential and its tokens. `POST /credentials/revoke`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("CredentialsRevokeResponse", await self._api.call("/credentials/revoke", given(credential_id=credential_id)))


class SessionsOperations:
    """The operations of `client.sessions`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def init(self, *, instance_id: str | NotGiven = NOT_GIVEN, agent_type: str | NotGiven = NOT_GIVEN, user_id: str | NotGiven = NOT_GIVEN, metadata: dict[str, Any] | NotGiven = NOT_GIVEN, ordered: bool | NotGiven = NOT_GIVEN, reserve: bool | NotGiven = NOT_GIVEN, idle_timeout_seconds: int | NotGiven = NOT_GIVEN) -> SessionsInitResponse:
        """Open a session. `POST /sessions/init`. Needs the scope `read`."""
        return cast("SessionsInitResponse", await self._api.call("/sessions/init", given(instance_id=instance_id, agent_type=agent_type, user_id=user_id, metadata=metadata, ordered=ordered, reserve=reserve, idle_timeout_seconds=idle_timeout_seconds)))

    async def get(self, *, status: Literal['active', 'paused', 'completed', 'expired'] | NotGiven = NOT_GIVEN, agent_type: str | NotGiven = NOT_GIVEN, since: str | NotGiven = NOT_GIVEN, until: str | NotGiven = NOT_GIVEN, user_id: str | NotGiven = NOT_GIVEN, credential_id: str | NotGiven = NOT_GIVEN, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, cursor: str | NotGiven = NOT_GIVEN) -> SessionsGetResponse:
        """List sessions. `POST /sessions/get`. Needs the scope `read`."""
        return cast("SessionsGetResponse", await self._api.call("/sessions/get", given(status=status, agent_type=agent_type, since=since, until=until, user_id=user_id, credential_id=credential_id, page=page, page_size=page_size, cursor=cursor), retry=True))

    async def get_by_id(self, session_id: str) -> SessionsGetByIdResponse:
        """Read a session. `POST /sessions/get_by_id`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("SessionsGetByIdResponse", await self._api.call("/sessions/get_by_id", given(session_id=session_id), retry=True))

    async def close(self, session_id: str, *, reason: str | NotGiven = NOT_GIVEN) -> SessionsCloseResponse:
        """Close a session; work in flight is canceled. `POST /sessions/close`. Needs the scope `read`."""
        return cast("SessionsCloseResponse", await self._api.call("/sessions/close", given(session_id=session_id, reason=reason)))

    async def interrupt(self, *, ids: list[str] | NotGiven = NOT_GIVEN, session_id: str | NotGiven = NOT_GIVEN) -> SessionsInterruptResponse:
        """Cancel what is in flight; the sessions stay usable. `POST /sessions/interrupt`. Needs the scope `read`."""
        return cast("SessionsInterruptResponse", await self._api.call("/sessions/interrupt", given(ids=ids, session_id=session_id)))

    async def invite(self, session_id: str, *, agent_type: str, instance_id: str | NotGiven = NOT_GIVEN) -> SessionsInviteResponse:
        """Add an agent of a type to a session. `POST /sessions/invite`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("SessionsInviteResponse", await self._api.call("/sessions/invite", given(session_id=session_id, agent_type=agent_type, instance_id=instance_id)))


class MessagesOperations:
    """The operations of `client.messages`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def get(self, *, session_id: str | NotGiven = NOT_GIVEN, state: Literal['submitted', 'working', 'input-required', 'completed', 'failed', 'canceled'] | NotGiven = NOT_GIVEN, agent_type: str | NotGiven = NOT_GIVEN, instance_id: str | NotGiven = NOT_GIVEN, error_code: str | NotGiven = NOT_GIVEN, since: str | NotGiven = NOT_GIVEN, until: str | NotGiven = NOT_GIVEN, user_id: str | NotGiven = NOT_GIVEN, credential_id: str | NotGiven = NOT_GIVEN, client_message_id: str | NotGiven = NOT_GIVEN, text: str | NotGiven = NOT_GIVEN, waits_for: Literal['agent', 'room', 'turn', 'evaluator', 'quota', 'person'] | NotGiven = NOT_GIVEN, waited_ms: int | NotGiven = NOT_GIVEN, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, cursor: str | NotGiven = NOT_GIVEN) -> MessagesGetResponse:
        """List messages. `POST /messages/get`. Needs the scope `read`."""
        return cast("MessagesGetResponse", await self._api.call("/messages/get", given(session_id=session_id, state=state, agent_type=agent_type, instance_id=instance_id, error_code=error_code, since=since, until=until, user_id=user_id, credential_id=credential_id, client_message_id=client_message_id, text=text, waits_for=waits_for, waited_ms=waited_ms, page=page, page_size=page_size, cursor=cursor), retry=True))

    async def get_by_id(self, message_id: str) -> MessagesGetByIdResponse:
        """Read a message. `POST /messages/get_by_id`. Needs the scope `read`."""
        return cast("MessagesGetByIdResponse", await self._api.call("/messages/get_by_id", given(message_id=message_id), retry=True))

    async def cancel(self, message_id: str, *, reason: str | NotGiven = NOT_GIVEN) -> MessagesCancelResponse:
        """Cancel a message. `POST /messages/cancel`. Needs the scope `read`."""
        return cast("MessagesCancelResponse", await self._api.call("/messages/cancel", given(message_id=message_id, reason=reason)))

    async def retry(self, message_id: str, *, idempotency_key: str | NotGiven = NOT_GIVEN, confirm: bool | NotGiven = NOT_GIVEN) -> MessagesRetryResponse:
        """Send a message that failed or was canceled again. `POST /messages/retry`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("MessagesRetryResponse", await self._api.call("/messages/retry", given(message_id=message_id, idempotency_key=idempotency_key, confirm=confirm)))

    async def pending(self, *, session_id: str | NotGiven = NOT_GIVEN, user_id: str | NotGiven = NOT_GIVEN, credential_id: str | NotGiven = NOT_GIVEN, limit: int | NotGiven = NOT_GIVEN, offset: int | NotGiven = NOT_GIVEN) -> MessagesPendingResponse:
        """Messages that wait for a human. `POST /messages/pending`. Needs the scope `read`."""
        return cast("MessagesPendingResponse", await self._api.call("/messages/pending", given(session_id=session_id, user_id=user_id, credential_id=credential_id, limit=limit, offset=offset), retry=True))

    async def get_groups(self, by: Literal['error_code', 'waits_for', 'agent_type'], *, state: Literal['submitted', 'working', 'input-required', 'completed', 'failed', 'canceled'] | NotGiven = NOT_GIVEN, since: str | NotGiven = NOT_GIVEN, waited_ms: int | NotGiven = NOT_GIVEN) -> MessagesGetGroupsResponse:
        """Count messages that are stuck or failed, by what they have in common. `POST /messages/get_groups`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("MessagesGetGroupsResponse", await self._api.call("/messages/get_groups", given(by=by, state=state, since=since, waited_ms=waited_ms), retry=True))

    async def get_rates(self, *, hours: int | NotGiven = NOT_GIVEN) -> MessagesGetRatesResponse:
        """Messages of each hour: accepted, failed, and how long they took. `POST /messages/get_rates`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("MessagesGetRatesResponse", await self._api.call("/messages/get_rates", given(hours=hours), retry=True))

    async def resolve(self, id: str, resolution: str | dict[str, Any], *, request_id: str | NotGiven = NOT_GIVEN, callback_token: str | NotGiven = NOT_GIVEN, comment: str | NotGiven = NOT_GIVEN, data: dict[str, Any] | NotGiven = NOT_GIVEN, arguments: dict[str, Any] | NotGiven = NOT_GIVEN, digest: str | NotGiven = NOT_GIVEN) -> MessagesResolveResponse:
        """Answer what a message waits for. `POST /messages/{id}/resolve`. Needs no token."""
        return cast("MessagesResolveResponse", await self._api.call(f"/messages/{quote(id, safe='')}/resolve", given(resolution=resolution, request_id=request_id, callback_token=callback_token, comment=comment, data=data, arguments=arguments, digest=digest)))

    async def get_approvals(self, *, message_id: str | NotGiven = NOT_GIVEN, plan_id: str | NotGiven = NOT_GIVEN) -> MessagesGetApprovalsResponse:
        """Who decided about a message or a plan, for whom it is or with the scope admin. `POST /messages/get_approvals`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("MessagesGetApprovalsResponse", await self._api.call("/messages/get_approvals", given(message_id=message_id, plan_id=plan_id), retry=True))

    async def get_held_output(self, message_id: str) -> MessagesGetHeldOutputResponse:
        """The output of an agent that a guard holds until somebody approves it. `POST /messages/get_held_output`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("MessagesGetHeldOutputResponse", await self._api.call("/messages/get_held_output", given(message_id=message_id), retry=True))

    def export_approvals(self, *, since: str | NotGiven = NOT_GIVEN, until: str | NotGiven = NOT_GIVEN) -> AsyncIterator[MessagesExportApprovalsItem]:
        """All decisions of the tenant as JSON Lines, the oldest first. `POST /messages/export_approvals`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("AsyncIterator[MessagesExportApprovalsItem]", self._api.lines("/messages/export_approvals", given(since=since, until=until)))


class RequestsOperations:
    """The operations of `client.requests`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def get(self, *, state: Literal['open', 'decided', 'expired', 'withdrawn', 'all'] | NotGiven = NOT_GIVEN, mine: bool | NotGiven = NOT_GIVEN, approver: str | NotGiven = NOT_GIVEN, tool: str | NotGiven = NOT_GIVEN, agent_type: str | NotGiven = NOT_GIVEN, user_id: str | NotGiven = NOT_GIVEN, session_id: str | NotGiven = NOT_GIVEN, kind: Literal['approval', 'form', 'confirmation'] | NotGiven = NOT_GIVEN, source: Literal['policy', 'guard', 'agent', 'plan'] | NotGiven = NOT_GIVEN, before: str | NotGiven = NOT_GIVEN, after: str | NotGiven = NOT_GIVEN, sort: Literal['oldest', 'newest', 'expires'] | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, cursor: str | NotGiven = NOT_GIVEN) -> RequestsGetResponse:
        """List requests to people, about messages and plans. `POST /requests/get`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("RequestsGetResponse", await self._api.call("/requests/get", given(state=state, mine=mine, approver=approver, tool=tool, agent_type=agent_type, user_id=user_id, session_id=session_id, kind=kind, source=source, before=before, after=after, sort=sort, page_size=page_size, cursor=cursor), retry=True))

    async def get_by_id(self, request_id: str) -> RequestsGetByIdResponse:
        """Read a request to people. `POST /requests/get_by_id`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("RequestsGetByIdResponse", await self._api.call("/requests/get_by_id", given(request_id=request_id), retry=True))

    async def get_similar(self, request_id: str) -> RequestsGetSimilarResponse:
        """Earlier decisions about the same, the newest first. `POST /requests/get_similar`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("RequestsGetSimilarResponse", await self._api.call("/requests/get_similar", given(request_id=request_id), retry=True))

    async def resolve_many(self, request_ids: list[str], *, resolution: str, comment: str | NotGiven = NOT_GIVEN, dry_run: bool | NotGiven = NOT_GIVEN) -> RequestsResolveManyResponse:
        """Answer many requests, each as by /messages/{id}/resolve. `POST /requests/resolve_many`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("RequestsResolveManyResponse", await self._api.call("/requests/resolve_many", given(request_ids=request_ids, resolution=resolution, comment=comment, dry_run=dry_run)))

    async def get_receipt(self, request_id: str) -> RequestsGetReceiptResponse:
        """A signed receipt of a decision. `POST /requests/get_receipt`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("RequestsGetReceiptResponse", await self._api.call("/requests/get_receipt", given(request_id=request_id), retry=True))


class AgentsOperations:
    """The operations of `client.agents`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def register(self, agent_type: str, *, instance_id: str | NotGiven = NOT_GIVEN, deployment_mode: Literal['hosted', 'connected'] | NotGiven = NOT_GIVEN, public_url: str | NotGiven = NOT_GIVEN, url: str | NotGiven = NOT_GIVEN, agent_card: dict[str, Any] | NotGiven = NOT_GIVEN, skills: list[AgentsRegisterRequestSkill] | NotGiven = NOT_GIVEN, tools: list[str | AgentsRegisterRequestTools] | NotGiven = NOT_GIVEN, max_concurrent_sessions: int | NotGiven = NOT_GIVEN, max_concurrent_tasks: int | NotGiven = NOT_GIVEN, agent_version: str | NotGiven = NOT_GIVEN, provider_organization: str | NotGiven = NOT_GIVEN, provider_url: str | NotGiven = NOT_GIVEN, context: dict[str, Any] | NotGiven = NOT_GIVEN, dispatch_auth: AgentsRegisterRequestDispatchAuth | AgentsRegisterRequestDispatchAuth1 | AgentsRegisterRequestDispatchAuth2 | NotGiven = NOT_GIVEN) -> AgentsRegisterResponse:
        """Register an agent, or register it again. `POST /agents/register`. Scope read with a token that stands for the agent's type; any other token needs full."""
        return cast("AgentsRegisterResponse", await self._api.call("/agents/register", given(agent_type=agent_type, instance_id=instance_id, deployment_mode=deployment_mode, public_url=public_url, url=url, agent_card=agent_card, skills=skills, tools=tools, max_concurrent_sessions=max_concurrent_sessions, max_concurrent_tasks=max_concurrent_tasks, agent_version=agent_version, provider_organization=provider_organization, provider_url=provider_url, context=context, dispatch_auth=dispatch_auth)))

    async def heartbeat(self, body: AgentsHeartbeatRequest) -> AgentsHeartbeatResponse:
        """Report that an agent is alive. `POST /agents/heartbeat`. Scope read with a token that stands for the agent's type; any other token needs admin."""
        return cast("AgentsHeartbeatResponse", await self._api.call("/agents/heartbeat", dict(body), retry=True))

    async def get(self, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, status: Literal['available', 'busy', 'draining', 'unhealthy', 'offline', 'unknown'] | NotGiven = NOT_GIVEN, agent_type: str | NotGiven = NOT_GIVEN, deployment_mode: Literal['hosted', 'connected'] | NotGiven = NOT_GIVEN, failing: Literal[True] | NotGiven = NOT_GIVEN, registered: bool | NotGiven = NOT_GIVEN) -> AgentsGetResponse:
        """List agents. `POST /agents/get`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("AgentsGetResponse", await self._api.call("/agents/get", given(page=page, page_size=page_size, status=status, agent_type=agent_type, deployment_mode=deployment_mode, failing=failing, registered=registered), retry=True))

    async def get_types(self) -> AgentsGetTypesResponse:
        """What each agent type has to do, and how it fares. `POST /agents/get_types`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("AgentsGetTypesResponse", await self._api.call("/agents/get_types", given(), retry=True))

    async def get_by_id(self, instance_id: str) -> AgentsGetByIdResponse:
        """Read an agent. `POST /agents/get_by_id`. Needs the scope `read`."""
        return cast("AgentsGetByIdResponse", await self._api.call("/agents/get_by_id", given(instance_id=instance_id), retry=True))

    async def deregister(self, instance_id: str, *, reason: str | NotGiven = NOT_GIVEN) -> AgentsDeregisterResponse:
        """Take an agent out: no new work, sessions unbound. `POST /agents/deregister`. Scope read with a token that stands for the agent's type; any other token needs admin."""
        return cast("AgentsDeregisterResponse", await self._api.call("/agents/deregister", given(instance_id=instance_id, reason=reason)))

    async def drain(self, instance_id: str) -> AgentsDrainResponse:
        """Send an agent nothing new until /agents/undrain, whatever it reports. `POST /agents/drain`. Scope read with a token that stands for the agent's type; any other token needs admin.

        An extension of the specification, which may change without notice."""
        return cast("AgentsDrainResponse", await self._api.call("/agents/drain", given(instance_id=instance_id)))

    async def undrain(self, instance_id: str) -> AgentsUndrainResponse:
        """Let an agent that was drained take messages again. `POST /agents/undrain`. Scope read with a token that stands for the agent's type; any other token needs admin.

        An extension of the specification, which may change without notice."""
        return cast("AgentsUndrainResponse", await self._api.call("/agents/undrain", given(instance_id=instance_id)))

    async def get_connection(self, instance_id: str) -> AgentsGetConnectionResponse:
        """Read how an agent is reached, and how its dispatches fared. `POST /agents/get_connection`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("AgentsGetConnectionResponse", await self._api.call("/agents/get_connection", given(instance_id=instance_id), retry=True))

    async def get_connection_stats(self, *, agent_type: str | NotGiven = NOT_GIVEN) -> AgentsGetConnectionStatsResponse:
        """Count agents by mode, status and transport. `POST /agents/get_connection_stats`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("AgentsGetConnectionStatsResponse", await self._api.call("/agents/get_connection_stats", given(agent_type=agent_type), retry=True))

    async def allow_type(self, agent_type: str) -> AgentsAllowTypeResponse:
        """Put an agent type on the list of those that may join; without a list every type may. `POST /agents/allow_type`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("AgentsAllowTypeResponse", await self._api.call("/agents/allow_type", given(agent_type=agent_type), retry=True))

    async def disallow_type(self, agent_type: str) -> AgentsDisallowTypeResponse:
        """Keep an agent type out and deregister its instances. `POST /agents/disallow_type`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("AgentsDisallowTypeResponse", await self._api.call("/agents/disallow_type", given(agent_type=agent_type), retry=True))

    async def set_default(self, agent_type: str | None) -> AgentsSetDefaultResponse:
        """Set the agent type that gets messages which name no target. `POST /agents/set_default`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("AgentsSetDefaultResponse", await self._api.call("/agents/set_default", given(agent_type=agent_type), retry=True))


class ToolsOperations:
    """The operations of `client.tools`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def get(self) -> ToolsGetResponse:
        """List the tools that registered agents and the platform offer. `POST /tools/get`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("ToolsGetResponse", await self._api.call("/tools/get", given(), retry=True))

    async def set_owner(self, tool: str, *, agent_types: list[str] | None) -> ToolsSetOwnerResponse:
        """Say which agent types may offer a tool. `POST /tools/set_owner`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("ToolsSetOwnerResponse", await self._api.call("/tools/set_owner", given(tool=tool, agent_types=agent_types), retry=True))

    async def call(self, tool: str, *, arguments: dict[str, Any] | NotGiven = NOT_GIVEN, target: ToolsCallRequestTarget | None | NotGiven = NOT_GIVEN, dispatch_id: str | None | NotGiven = NOT_GIVEN, session_id: str | None | NotGiven = NOT_GIVEN, deadline_ms: int | None | NotGiven = NOT_GIVEN, idempotency_key: str | None | NotGiven = NOT_GIVEN, instance_id: str | NotGiven = NOT_GIVEN) -> ToolsCallResponse:
        """Call a tool of another agent, or of the platform, on behalf of an agent without a socket. `POST /tools/call`. Scope read with a token that stands for the agent's type; any other token needs full.

        An extension of the specification, which may change without notice."""
        return cast("ToolsCallResponse", await self._api.call("/tools/call", given(tool=tool, arguments=arguments, target=target, dispatch_id=dispatch_id, session_id=session_id, deadline_ms=deadline_ms, idempotency_key=idempotency_key, instance_id=instance_id)))


class PlansOperations:
    """The operations of `client.plans`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def create(self, session_id: str, *, description: str, steps: list[PlansCreateRequestStep], max_parallel: int | NotGiven = NOT_GIVEN, auto_approve: bool | NotGiven = NOT_GIVEN) -> PlansCreateResponse:
        """Propose a plan: a graph of steps, each of which is a message to an agent. `POST /plans/create`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("PlansCreateResponse", await self._api.call("/plans/create", given(session_id=session_id, description=description, steps=steps, max_parallel=max_parallel, auto_approve=auto_approve)))

    async def get(self, *, session_id: str | NotGiven = NOT_GIVEN, state: Literal['proposed', 'running', 'completed', 'failed', 'canceled', 'rejected'] | NotGiven = NOT_GIVEN, since: str | NotGiven = NOT_GIVEN, until: str | NotGiven = NOT_GIVEN, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, cursor: str | NotGiven = NOT_GIVEN) -> PlansGetResponse:
        """List plans. `POST /plans/get`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("PlansGetResponse", await self._api.call("/plans/get", given(session_id=session_id, state=state, since=since, until=until, page=page, page_size=page_size, cursor=cursor), retry=True))

    async def get_by_id(self, plan_id: str) -> PlansGetByIdResponse:
        """Read a plan with its steps. `POST /plans/get_by_id`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("PlansGetByIdResponse", await self._api.call("/plans/get_by_id", given(plan_id=plan_id), retry=True))

    async def approve(self, plan_id: str, *, comment: str | NotGiven = NOT_GIVEN) -> PlansApproveResponse:
        """Approve a proposed plan, which then starts; needs the scope admin, or to be an approver. `POST /plans/approve`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("PlansApproveResponse", await self._api.call("/plans/approve", given(plan_id=plan_id, comment=comment)))

    async def reject(self, plan_id: str, *, comment: str | NotGiven = NOT_GIVEN) -> PlansRejectResponse:
        """Reject a proposed plan; needs the scope admin, or to be an approver. `POST /plans/reject`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("PlansRejectResponse", await self._api.call("/plans/reject", given(plan_id=plan_id, comment=comment)))

    async def cancel(self, plan_id: str, *, reason: str | NotGiven = NOT_GIVEN) -> PlansCancelResponse:
        """Cancel a plan with the messages of its steps. `POST /plans/cancel`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("PlansCancelResponse", await self._api.call("/plans/cancel", given(plan_id=plan_id, reason=reason)))


class PoliciesOperations:
    """The operations of `client.policies`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def create_policy(self, name: str, *, decision: Literal['allow', 'deny', 'require_approval', 'audit'], scope: Literal['admission', 'dispatch', 'tool', 'plan', 'session'], description: str | NotGiven = NOT_GIVEN, match: PoliciesCreatePolicyRequestMatch | NotGiven = NOT_GIVEN, reason: str | NotGiven = NOT_GIVEN, approvers: list[str] | NotGiven = NOT_GIVEN, evaluator: PoliciesCreatePolicyRequestEvaluator | PoliciesCreatePolicyRequestEvaluator1 | PoliciesCreatePolicyRequestEvaluator2 | NotGiven = NOT_GIVEN, priority: int | NotGiven = NOT_GIVEN, enabled: bool | NotGiven = NOT_GIVEN, end_at: str | None | NotGiven = NOT_GIVEN, max_calls: int | None | NotGiven = NOT_GIVEN, tenant_id: str | NotGiven = NOT_GIVEN) -> PoliciesCreatePolicyResponse:
        """Create a policy. `POST /policies/create_policy`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesCreatePolicyResponse", await self._api.call("/policies/create_policy", given(name=name, decision=decision, description=description, match=match, reason=reason, approvers=approvers, evaluator=evaluator, priority=priority, enabled=enabled, end_at=end_at, max_calls=max_calls, tenant_id=tenant_id, scope=scope)))

    async def get_policies(self, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, tenant_id: str | NotGiven = NOT_GIVEN, scope: Literal['admission', 'dispatch', 'tool', 'plan', 'session'] | NotGiven = NOT_GIVEN, enabled: bool | NotGiven = NOT_GIVEN) -> PoliciesGetPoliciesResponse:
        """List policies. `POST /policies/get_policies`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesGetPoliciesResponse", await self._api.call("/policies/get_policies", given(page=page, page_size=page_size, tenant_id=tenant_id, scope=scope, enabled=enabled), retry=True))

    async def get_policy_by_id(self, policy_id: str, *, tenant_id: str | NotGiven = NOT_GIVEN) -> PoliciesGetPolicyByIdResponse:
        """Read a policy. `POST /policies/get_policy_by_id`. Needs the scope `admin`."""
        return cast("PoliciesGetPolicyByIdResponse", await self._api.call("/policies/get_policy_by_id", given(tenant_id=tenant_id, policy_id=policy_id), retry=True))

    async def update_policy(self, policy_id: str, *, name: str | NotGiven = NOT_GIVEN, decision: Literal['allow', 'deny', 'require_approval', 'audit'] | NotGiven = NOT_GIVEN, description: str | NotGiven = NOT_GIVEN, match: PoliciesUpdatePolicyRequestMatch | NotGiven = NOT_GIVEN, reason: str | NotGiven = NOT_GIVEN, approvers: list[str] | NotGiven = NOT_GIVEN, evaluator: PoliciesUpdatePolicyRequestEvaluator | PoliciesUpdatePolicyRequestEvaluator1 | PoliciesUpdatePolicyRequestEvaluator2 | NotGiven = NOT_GIVEN, priority: int | NotGiven = NOT_GIVEN, enabled: bool | NotGiven = NOT_GIVEN, end_at: str | None | NotGiven = NOT_GIVEN, max_calls: int | None | NotGiven = NOT_GIVEN, tenant_id: str | NotGiven = NOT_GIVEN) -> PoliciesUpdatePolicyResponse:
        """Change a policy; only given fields change. `POST /policies/update_policy`. Needs the scope `admin`."""
        return cast("PoliciesUpdatePolicyResponse", await self._api.call("/policies/update_policy", given(name=name, decision=decision, description=description, match=match, reason=reason, approvers=approvers, evaluator=evaluator, priority=priority, enabled=enabled, end_at=end_at, max_calls=max_calls, tenant_id=tenant_id, policy_id=policy_id), retry=True))

    async def delete_policy(self, policy_id: str, *, tenant_id: str | NotGiven = NOT_GIVEN) -> PoliciesDeletePolicyResponse:
        """Delete a policy. `POST /policies/delete_policy`. Needs the scope `admin`."""
        return cast("PoliciesDeletePolicyResponse", await self._api.call("/policies/delete_policy", given(tenant_id=tenant_id, policy_id=policy_id)))

    async def test_policy(self, scope: Literal['admission', 'dispatch', 'tool', 'plan', 'session'], *, action: str, tenant_id: str | NotGiven = NOT_GIVEN, tool: str | NotGiven = NOT_GIVEN, agent_type: str | NotGiven = NOT_GIVEN, instance_id: str | NotGiven = NOT_GIVEN, skill_id: str | NotGiven = NOT_GIVEN, session_id: str | NotGiven = NOT_GIVEN, user_id: str | NotGiven = NOT_GIVEN, arguments: dict[str, Any] | NotGiven = NOT_GIVEN) -> PoliciesTestPolicyResponse:
        """Decide without consequences, and say why. `POST /policies/test_policy`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesTestPolicyResponse", await self._api.call("/policies/test_policy", given(tenant_id=tenant_id, scope=scope, action=action, tool=tool, agent_type=agent_type, instance_id=instance_id, skill_id=skill_id, session_id=session_id, user_id=user_id, arguments=arguments), retry=True))

    async def backtest(self, policy: PoliciesBacktestRequestPolicy, *, tenant_id: str | NotGiven = NOT_GIVEN, from_: str | NotGiven = NOT_GIVEN, to: str | NotGiven = NOT_GIVEN, limit: int | NotGiven = NOT_GIVEN) -> PoliciesBacktestResponse:
        """What a policy would have decided about the past. `POST /policies/backtest`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesBacktestResponse", await self._api.call("/policies/backtest", given(tenant_id=tenant_id, policy=policy, **{"from": from_}, to=to, limit=limit), retry=True))

    async def get_guards(self, *, tenant_id: str | NotGiven = NOT_GIVEN) -> PoliciesGetGuardsResponse:
        """The guards and their settings. `POST /policies/get_guards`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesGetGuardsResponse", await self._api.call("/policies/get_guards", given(tenant_id=tenant_id), retry=True))

    async def update_guard(self, body: PoliciesUpdateGuardRequest) -> PoliciesUpdateGuardResponse:
        """Change a guard. `POST /policies/update_guard`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesUpdateGuardResponse", await self._api.call("/policies/update_guard", dict(body), retry=True))

    async def new_alert(self, name: str, *, condition: PoliciesNewAlertRequestCondition, notifications: list[PoliciesNewAlertRequestNotifications | PoliciesNewAlertRequestNotifications1 | PoliciesNewAlertRequestNotifications2], severity: Literal['info', 'warning', 'critical'] | NotGiven = NOT_GIVEN, threshold: int | NotGiven = NOT_GIVEN, window_seconds: int | NotGiven = NOT_GIVEN, cooldown_seconds: int | NotGiven = NOT_GIVEN, description: str | NotGiven = NOT_GIVEN, enabled: bool | NotGiven = NOT_GIVEN, approvers: list[str] | NotGiven = NOT_GIVEN) -> PoliciesNewAlertResponse:
        """Create an alert rule. `POST /policies/new_alert`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesNewAlertResponse", await self._api.call("/policies/new_alert", given(name=name, condition=condition, notifications=notifications, severity=severity, threshold=threshold, window_seconds=window_seconds, cooldown_seconds=cooldown_seconds, description=description, enabled=enabled, approvers=approvers)))

    async def get_alerts(self, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN) -> PoliciesGetAlertsResponse:
        """List alert rules. `POST /policies/get_alerts`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesGetAlertsResponse", await self._api.call("/policies/get_alerts", given(page=page, page_size=page_size), retry=True))

    async def get_alert_by_id(self, rule_id: str) -> PoliciesGetAlertByIdResponse:
        """Read an alert rule. `POST /policies/get_alert_by_id`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesGetAlertByIdResponse", await self._api.call("/policies/get_alert_by_id", given(rule_id=rule_id), retry=True))

    async def update_alert(self, rule_id: str, *, name: str | NotGiven = NOT_GIVEN, condition: PoliciesUpdateAlertRequestCondition | NotGiven = NOT_GIVEN, notifications: list[PoliciesUpdateAlertRequestNotifications | PoliciesUpdateAlertRequestNotifications1 | PoliciesUpdateAlertRequestNotifications2] | NotGiven = NOT_GIVEN, severity: Literal['info', 'warning', 'critical'] | NotGiven = NOT_GIVEN, threshold: int | NotGiven = NOT_GIVEN, window_seconds: int | NotGiven = NOT_GIVEN, cooldown_seconds: int | NotGiven = NOT_GIVEN, description: str | NotGiven = NOT_GIVEN, enabled: bool | NotGiven = NOT_GIVEN, approvers: list[str] | NotGiven = NOT_GIVEN) -> PoliciesUpdateAlertResponse:
        """Change an alert rule; only given fields change. `POST /policies/update_alert`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("PoliciesUpdateAlertResponse", await self._api.call("/policies/update_alert", given(rule_id=rule_id, name=name, condition=condition, notifications=notifications, severity=severity, threshold=threshold, window_seconds=window_seconds, cooldown_seconds=cooldown_seconds, description=description, enabled=enabled, approvers=approvers), retry=True))

    async def delete_alert(self, rule_id: str) -> PoliciesDeleteAlertResponse:
        """Delete an alert rule; it sends nothing more. `POST /policies/delete_alert`. Needs the scope `admin`."""
        return cast("PoliciesDeleteAlertResponse", await self._api.call("/policies/delete_alert", given(rule_id=rule_id)))

    async def test_alert(self, rule_id: str) -> PoliciesTestAlertResponse:
        """Send a test notification to every channel of a rule. `POST /policies/test_alert`. Needs the scope `admin`."""
        return cast("PoliciesTestAlertResponse", await self._api.call("/policies/test_alert", given(rule_id=rule_id)))


class WebhooksOperations:
    """The operations of `client.webhooks`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def get_deliveries(self, *, delivery_id: str | NotGiven = NOT_GIVEN, rule_id: str | NotGiven = NOT_GIVEN, task_id: str | NotGiven = NOT_GIVEN, event_type: str | NotGiven = NOT_GIVEN, success: bool | NotGiven = NOT_GIVEN, status: Literal['pending', 'delivered', 'failed', 'dropped'] | NotGiven = NOT_GIVEN, since: str | NotGiven = NOT_GIVEN, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN) -> WebhooksGetDeliveriesResponse:
        """List deliveries with their attempts, newest first. `POST /webhooks/get_deliveries`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("WebhooksGetDeliveriesResponse", await self._api.call("/webhooks/get_deliveries", given(delivery_id=delivery_id, rule_id=rule_id, task_id=task_id, event_type=event_type, success=success, status=status, since=since, page=page, page_size=page_size), retry=True))

    async def redeliver(self, delivery_id: str) -> WebhooksRedeliverResponse:
        """Send a delivery again under the same delivery_id. `POST /webhooks/redeliver`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("WebhooksRedeliverResponse", await self._api.call("/webhooks/redeliver", given(delivery_id=delivery_id)))


class SlackOperations:
    """The operations of `client.slack`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def interactions(self, payload: str) -> SlackInteractionsResponse:
        """A button pressed in Slack; verified by Slack's signature. `POST /slack/interactions`. Needs no token.

        An extension of the specification, which may change without notice."""
        return cast("SlackInteractionsResponse", await self._api.call("/slack/interactions", form=given(payload=payload)))


class TelemetryOperations:
    """The operations of `client.telemetry`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def get_events(self, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, session_id: str | NotGiven = NOT_GIVEN, message_id: str | NotGiven = NOT_GIVEN, instance_id: str | NotGiven = NOT_GIVEN, category: str | NotGiven = NOT_GIVEN, type: str | NotGiven = NOT_GIVEN, source: str | NotGiven = NOT_GIVEN, from_: str | NotGiven = NOT_GIVEN, to: str | NotGiven = NOT_GIVEN) -> TelemetryGetEventsResponse:
        """List events. `POST /telemetry/get_events`. Needs the scope `read`."""
        return cast("TelemetryGetEventsResponse", await self._api.call("/telemetry/get_events", given(page=page, page_size=page_size, session_id=session_id, message_id=message_id, instance_id=instance_id, category=category, type=type, source=source, **{"from": from_}, to=to), retry=True))

    def stream_events(self, *, session_id: str | NotGiven = NOT_GIVEN, message_id: str | NotGiven = NOT_GIVEN, instance_id: str | NotGiven = NOT_GIVEN, category: str | NotGiven = NOT_GIVEN, type: str | NotGiven = NOT_GIVEN, source: str | NotGiven = NOT_GIVEN, last_event_id: str | NotGiven = NOT_GIVEN) -> AsyncIterator[TelemetryStreamEventsItem]:
        """Follow events as they happen (server-sent events). `POST /telemetry/stream_events`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("AsyncIterator[TelemetryStreamEventsItem]", self._api.events("/telemetry/stream_events", given(session_id=session_id, message_id=message_id, instance_id=instance_id, category=category, type=type, source=source, last_event_id=last_event_id)))

    async def get_traces(self, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, trace_id: str | NotGiven = NOT_GIVEN, session_id: str | NotGiven = NOT_GIVEN, status: Literal['running', 'ok', 'error', 'canceled'] | NotGiven = NOT_GIVEN, has_plan: bool | NotGiven = NOT_GIVEN) -> TelemetryGetTracesResponse:
        """List traces, or read one with its spans. `POST /telemetry/get_traces`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("TelemetryGetTracesResponse", await self._api.call("/telemetry/get_traces", given(page=page, page_size=page_size, trace_id=trace_id, session_id=session_id, status=status, has_plan=has_plan), retry=True))

    async def get_usage(self, *, summary: bool | NotGiven = NOT_GIVEN, range: Literal['24h', '7d', '30d'] | NotGiven = NOT_GIVEN, group_by: Literal['agent_type', 'model', 'instance_id', 'day', 'session', 'user', 'credential'] | NotGiven = NOT_GIVEN, sort: Literal['tokens', 'messages', 'dispatches', 'tool_calls', 'input_tokens', 'output_tokens', 'total_tokens', 'duration_ms', 'cost_usd', 'key'] | NotGiven = NOT_GIVEN, order: Literal['asc', 'desc'] | NotGiven = NOT_GIVEN, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN) -> TelemetryGetUsageResponse:
        """What agents used: messages, tool calls, tokens, time and cost. `POST /telemetry/get_usage`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("TelemetryGetUsageResponse", await self._api.call("/telemetry/get_usage", given(summary=summary, range=range, group_by=group_by, sort=sort, order=order, page=page, page_size=page_size), retry=True))


class TenantsOperations:
    """The operations of `client.tenants`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def create(self, name: str, *, default_agent_type: str | None | NotGiven = NOT_GIVEN, limits: TenantsCreateRequestLimits | NotGiven = NOT_GIVEN, credential: TenantsCreateRequestCredential | NotGiven = NOT_GIVEN) -> TenantsCreateResponse:
        """Create a tenant, with its first credential if asked. `POST /tenants/create`. Needs the scope `operator`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsCreateResponse", await self._api.call("/tenants/create", given(name=name, default_agent_type=default_agent_type, limits=limits, credential=credential)))

    async def get(self, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN) -> TenantsGetResponse:
        """List the tenants, newest first. `POST /tenants/get`. Needs the scope `operator`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsGetResponse", await self._api.call("/tenants/get", given(page=page, page_size=page_size), retry=True))

    async def get_by_id(self, tenant_id: str) -> TenantsGetByIdResponse:
        """Read a tenant. `POST /tenants/get_by_id`. Needs the scope `operator`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsGetByIdResponse", await self._api.call("/tenants/get_by_id", given(tenant_id=tenant_id), retry=True))

    async def update(self, tenant_id: str, *, name: str | NotGiven = NOT_GIVEN, default_agent_type: str | None | NotGiven = NOT_GIVEN, limits: TenantsUpdateRequestLimits | NotGiven = NOT_GIVEN) -> TenantsUpdateResponse:
        """Change a tenant; only given fields change. `POST /tenants/update`. Needs the scope `operator`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsUpdateResponse", await self._api.call("/tenants/update", given(name=name, default_agent_type=default_agent_type, limits=limits, tenant_id=tenant_id), retry=True))

    async def delete(self, tenant_id: str) -> TenantsDeleteResponse:
        """Delete a tenant: its tokens end, and all that it has is erased. `POST /tenants/delete`. Needs the scope `operator`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsDeleteResponse", await self._api.call("/tenants/delete", given(tenant_id=tenant_id)))

    async def get_limits(self) -> TenantsGetLimitsResponse:
        """The quotas of the tenant, and what has been used of them. `POST /tenants/get_limits`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsGetLimitsResponse", await self._api.call("/tenants/get_limits", given(), retry=True))

    async def set_limits(self, *, messages_per_day: int | None | NotGiven = NOT_GIVEN, tokens_per_day: int | None | NotGiven = NOT_GIVEN, cost_usd_per_month: float | None | NotGiven = NOT_GIVEN, per_user: TenantsSetLimitsRequestPerUser | None | NotGiven = NOT_GIVEN, per_credential: TenantsSetLimitsRequestPerCredential | None | NotGiven = NOT_GIVEN, per_agent_type: TenantsSetLimitsRequestPerAgentType | None | NotGiven = NOT_GIVEN) -> TenantsSetLimitsResponse:
        """Set quotas; null removes one. `POST /tenants/set_limits`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsSetLimitsResponse", await self._api.call("/tenants/set_limits", given(messages_per_day=messages_per_day, tokens_per_day=tokens_per_day, cost_usd_per_month=cost_usd_per_month, per_user=per_user, per_credential=per_credential, per_agent_type=per_agent_type), retry=True))

    async def get_prices(self) -> TenantsGetPricesResponse:
        """The tenant's prices of models. `POST /tenants/get_prices`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsGetPricesResponse", await self._api.call("/tenants/get_prices", given(), retry=True))

    async def set_prices(self, model: str, *, input_per_million: float | None, output_per_million: float | None) -> TenantsSetPricesResponse:
        """Set the price of a model, for what is used from then on. `POST /tenants/set_prices`. Needs the scope `full`.

        An extension of the specification, which may change without notice."""
        return cast("TenantsSetPricesResponse", await self._api.call("/tenants/set_prices", given(model=model, input_per_million=input_per_million, output_per_million=output_per_million), retry=True))


class AuditOperations:
    """The operations of `client.audit`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def get(self, *, audit_id: str | NotGiven = NOT_GIVEN, principal: str | NotGiven = NOT_GIVEN, action: str | NotGiven = NOT_GIVEN, target: str | NotGiven = NOT_GIVEN, from_: str | NotGiven = NOT_GIVEN, to: str | NotGiven = NOT_GIVEN, sort: Literal['newest', 'oldest'] | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN, cursor: str | NotGiven = NOT_GIVEN, format: Literal['json', 'jsonl'] | NotGiven = NOT_GIVEN) -> AuditGetResponse:
        """Who administered what, and who decided what; as JSON Lines too. `POST /audit/get`. Needs the scope `admin`.

        An extension of the specification, which may change without notice."""
        return cast("AuditGetResponse", await self._api.call("/audit/get", given(audit_id=audit_id, principal=principal, action=action, target=target, **{"from": from_}, to=to, sort=sort, page_size=page_size, cursor=cursor, format=format), retry=True))


class KnowledgeOperations:
    """The operations of `client.knowledge`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def new(self, namespace: str, *, display_name: str | NotGiven = NOT_GIVEN, description: str | NotGiven = NOT_GIVEN, visibility: Literal['private', 'tenant'] | NotGiven = NOT_GIVEN, config: KnowledgeNewRequestConfig | NotGiven = NOT_GIVEN, documents: list[KnowledgeNewRequestDocument] | NotGiven = NOT_GIVEN, idempotency_key: str | NotGiven = NOT_GIVEN, wait: bool | NotGiven = NOT_GIVEN) -> KnowledgeNewResponse:
        """Create a knowledge base, with documents if given. `POST /knowledge_base/new`. Needs the scope `full`."""
        return cast("KnowledgeNewResponse", await self._api.call("/knowledge_base/new", given(namespace=namespace, display_name=display_name, description=description, visibility=visibility, config=config, documents=documents, idempotency_key=idempotency_key, wait=wait)))

    async def get(self, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN) -> KnowledgeGetResponse:
        """List knowledge bases. `POST /knowledge_base/get`. Needs the scope `read`."""
        return cast("KnowledgeGetResponse", await self._api.call("/knowledge_base/get", given(page=page, page_size=page_size), retry=True))

    async def get_by_id(self, namespace: str) -> KnowledgeGetByIdResponse:
        """Read a knowledge base. `POST /knowledge_base/get_by_id`. Needs the scope `read`."""
        return cast("KnowledgeGetByIdResponse", await self._api.call("/knowledge_base/get_by_id", given(namespace=namespace), retry=True))

    async def update(self, namespace: str, *, display_name: str | NotGiven = NOT_GIVEN, description: str | NotGiven = NOT_GIVEN, visibility: Literal['private', 'tenant'] | NotGiven = NOT_GIVEN, config: KnowledgeUpdateRequestConfig | NotGiven = NOT_GIVEN) -> KnowledgeUpdateResponse:
        """Change a knowledge base; only given fields change. `POST /knowledge_base/update`. Needs the scope `full`."""
        return cast("KnowledgeUpdateResponse", await self._api.call("/knowledge_base/update", given(namespace=namespace, display_name=display_name, description=description, visibility=visibility, config=config), retry=True))

    async def delete(self, namespace: str) -> KnowledgeDeleteResponse:
        """Delete a knowledge base and all its data. `POST /knowledge_base/delete`. Needs the scope `full`."""
        return cast("KnowledgeDeleteResponse", await self._api.call("/knowledge_base/delete", given(namespace=namespace)))

    async def ingest(self, namespace: str, *, source_id: str | NotGiven = NOT_GIVEN, content: str | NotGiven = NOT_GIVEN, content_base64: str | NotGiven = NOT_GIVEN, url: str | NotGiven = NOT_GIVEN, title: str | NotGiven = NOT_GIVEN, filename: str | NotGiven = NOT_GIVEN, content_type: str | NotGiven = NOT_GIVEN, source_type: str | NotGiven = NOT_GIVEN, tags: list[str] | NotGiven = NOT_GIVEN, metadata: dict[str, Any] | NotGiven = NOT_GIVEN, documents: list[KnowledgeIngestRequestDocument] | NotGiven = NOT_GIVEN, idempotency_key: str | NotGiven = NOT_GIVEN, wait: bool | NotGiven = NOT_GIVEN) -> KnowledgeIngestResponse:
        """Take in documents, as a job where they are large. `POST /knowledge_base/ingest`. Needs the scope `full`."""
        return cast("KnowledgeIngestResponse", await self._api.call("/knowledge_base/ingest", given(namespace=namespace, source_id=source_id, content=content, content_base64=content_base64, url=url, title=title, filename=filename, content_type=content_type, source_type=source_type, tags=tags, metadata=metadata, documents=documents, idempotency_key=idempotency_key, wait=wait), retry=True))

    async def query(self, query: str, *, namespace: str | NotGiven = NOT_GIVEN, namespaces: list[str] | NotGiven = NOT_GIVEN, top_k: int | NotGiven = NOT_GIVEN, min_score: float | NotGiven = NOT_GIVEN, mode: Literal['hybrid', 'semantic', 'lexical'] | NotGiven = NOT_GIVEN, filters: KnowledgeQueryRequestFilters | NotGiven = NOT_GIVEN) -> KnowledgeQueryResponse:
        """Search knowledge bases; results carry citations. `POST /knowledge_base/query`. Needs the scope `read`."""
        return cast("KnowledgeQueryResponse", await self._api.call("/knowledge_base/query", given(namespace=namespace, namespaces=namespaces, query=query, top_k=top_k, min_score=min_score, mode=mode, filters=filters), retry=True))

    async def refresh(self, namespace: str, *, source_ids: list[str] | NotGiven = NOT_GIVEN, force: bool | NotGiven = NOT_GIVEN) -> KnowledgeRefreshResponse:
        """Fetch sources again, and embed stale ones anew. `POST /knowledge_base/refresh`. Needs the scope `full`."""
        return cast("KnowledgeRefreshResponse", await self._api.call("/knowledge_base/refresh", given(namespace=namespace, source_ids=source_ids, force=force), retry=True))

    async def get_stats(self, namespace: str) -> KnowledgeGetStatsResponse:
        """Count what a knowledge base holds. `POST /knowledge_base/get_stats`. Needs the scope `read`."""
        return cast("KnowledgeGetStatsResponse", await self._api.call("/knowledge_base/get_stats", given(namespace=namespace), retry=True))

    async def get_sources(self, namespace: str, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN) -> KnowledgeGetSourcesResponse:
        """List the sources of a knowledge base. `POST /knowledge_base/get_sources`. Needs the scope `read`."""
        return cast("KnowledgeGetSourcesResponse", await self._api.call("/knowledge_base/get_sources", given(namespace=namespace, page=page, page_size=page_size), retry=True))

    async def delete_source(self, namespace: str, *, source_id: str) -> KnowledgeDeleteSourceResponse:
        """Delete a source and all its chunks. `POST /knowledge_base/delete_source`. Needs the scope `full`."""
        return cast("KnowledgeDeleteSourceResponse", await self._api.call("/knowledge_base/delete_source", given(namespace=namespace, source_id=source_id)))

    async def get_jobs(self, namespace: str, *, page: int | NotGiven = NOT_GIVEN, page_size: int | NotGiven = NOT_GIVEN) -> KnowledgeGetJobsResponse:
        """List the jobs of a knowledge base. `POST /knowledge_base/get_jobs`. Needs the scope `read`.

        An extension of the specification, which may change without notice."""
        return cast("KnowledgeGetJobsResponse", await self._api.call("/knowledge_base/get_jobs", given(namespace=namespace, page=page, page_size=page_size), retry=True))

    async def get_status(self, job_id: str) -> KnowledgeGetStatusResponse:
        """Read how far a job is. `POST /knowledge_base/get_status`. Needs the scope `read`."""
        return cast("KnowledgeGetStatusResponse", await self._api.call("/knowledge_base/get_status", given(job_id=job_id), retry=True))


class PlatformOperations:
    """The operations of `client.platform`."""

    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    async def health(self, *, ready: Literal['full'] | NotGiven = NOT_GIVEN) -> PlatformHealthResponse:
        """Health of the platform. `GET /health`. Needs no token."""
        return cast("PlatformHealthResponse", await self._api.call("/health", params=given(ready=ready), method="GET", retry=True))

    async def agent_card(self) -> PlatformAgentCardResponse:
        """The A2A agent card: 0.3, or 1.0 by A2A-Version; with a token, the skills of its fleet. `GET /.well-known/agent-card.json`. Needs no token."""
        return cast("PlatformAgentCardResponse", await self._api.call("/.well-known/agent-card.json", params=given(), method="GET", retry=True))

    async def agent_type_card(self, agent_type: str) -> PlatformAgentTypeCardResponse:
        """The A2A agent card of an agent type: 0.3, or 1.0 by A2A-Version; with a token, the skills of its agents. `GET /a2a/{agent_type}/.well-known/agent-card.json`. Needs no token.

        An extension of the specification, which may change without notice."""
        return cast("PlatformAgentTypeCardResponse", await self._api.call(f"/a2a/{quote(agent_type, safe='')}/.well-known/agent-card.json", params=given(), method="GET", retry=True))

    async def get_health(self) -> PlatformGetHealthResponse:
        """The health of the platform with its nodes. `POST /platform/get_health`. Needs the scope `operator`.

        An extension of the specification, which may change without notice."""
        return cast("PlatformGetHealthResponse", await self._api.call("/platform/get_health", given(), retry=True))

    async def openapi(self) -> PlatformOpenapiResponse:
        """This description. `GET /openapi.json`. Needs no token.

        An extension of the specification, which may change without notice."""
        return cast("PlatformOpenapiResponse", await self._api.call("/openapi.json", params=given(), method="GET", retry=True))


class Operations:
    """The operations of the API: `POST /sessions/init` is `sessions.init`."""

    def __init__(self, api: PlatformApi) -> None:
        self.auth = AuthOperations(api)
        self.credentials = CredentialsOperations(api)
        self.sessions = SessionsOperations(api)
        self.messages = MessagesOperations(api)
        self.requests = RequestsOperations(api)
        self.agents = AgentsOperations(api)
        self.tools = ToolsOperations(api)
        self.plans = PlansOperations(api)
        self.policies = PoliciesOperations(api)
        self.webhooks = WebhooksOperations(api)
        self.slack = SlackOperations(api)
        self.telemetry = TelemetryOperations(api)
        self.tenants = TenantsOperations(api)
        self.audit = AuditOperations(api)
        self.knowledge = KnowledgeOperations(api)
        self.platform = PlatformOperations(api)
