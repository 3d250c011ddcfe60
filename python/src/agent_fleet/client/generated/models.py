# Generated from contracts/ by `npm run clients`.
# ruff: noqa
# mypy: disable-error-code="redundant-cast"

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, final

from agent_fleet.parts import Artifact, Part
from typing_extensions import TypedDict


class ErrorBody(TypedDict):
    error: str
    code: str
    request_id: str
    timestamp: str


class Credential(TypedDict):
    credential_id: str
    client_id: str
    tenant_id: str
    name: str
    scopes: list[str]
    agent_types: list[str]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None


class SessionSummarySentBy(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class SessionSummary(TypedDict):
    session_id: str
    tenant_id: str
    user_id: str | None
    sent_by: SessionSummarySentBy
    status: str
    total_turns: int
    total_tokens: int
    created_at: str
    ended_at: str | None


class SessionDetailsSentBy(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class SessionDetailsAgent(TypedDict):
    agent_type: str
    instance_id: str
    joined_at: str
    join_reason: str


class SessionDetails(TypedDict):
    session_id: str
    tenant_id: str
    user_id: str | None
    sent_by: SessionDetailsSentBy
    status: str
    total_turns: int
    total_tokens: int
    created_at: str
    ended_at: str | None
    metadata: dict[str, Any]
    ordered: bool
    agents: list[SessionDetailsAgent]


class TaskStatusMessage(TypedDict):
    kind: Literal['message']
    messageId: str
    role: str
    parts: list[Part]
    contextId: NotRequired[str]
    taskId: NotRequired[str]
    referenceTaskIds: NotRequired[list[str]]
    extensions: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]


class TaskStatus(TypedDict):
    state: str
    message: NotRequired[TaskStatusMessage]
    timestamp: NotRequired[str]


class TaskHistoryItem(TypedDict):
    kind: Literal['message']
    messageId: str
    role: str
    parts: list[Part]
    contextId: NotRequired[str]
    taskId: NotRequired[str]
    referenceTaskIds: NotRequired[list[str]]
    extensions: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]


class Task(TypedDict):
    kind: Literal['task']
    id: str
    contextId: str
    status: TaskStatus
    artifacts: NotRequired[list[Artifact]]
    history: NotRequired[list[TaskHistoryItem]]
    metadata: NotRequired[dict[str, Any]]


class MessageRecordSentBy(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class MessageRecordUsageByModelItem(TypedDict):
    input_tokens: int
    output_tokens: int
    model: NotRequired[str]
    cost_usd: NotRequired[float]


class MessageRecordUsage(TypedDict):
    input_tokens: int
    output_tokens: int
    model: NotRequired[str]
    cost_usd: NotRequired[float]
    by_model: NotRequired[list[MessageRecordUsageByModelItem]]


class MessageRecordError(TypedDict):
    code: str
    message: str


class MessageRecordWaitsForTarget(TypedDict):
    agent_type: NotRequired[str]
    instance_id: NotRequired[str]
    skill_id: NotRequired[str]


class MessageRecordWaitsFor(TypedDict):
    kind: str
    target: NotRequired[MessageRecordWaitsForTarget]
    since: str
    ahead: NotRequired[int]
    online: NotRequired[bool]


class InputRequestField(TypedDict):
    id: str
    type: str
    label: NotRequired[str]
    options: NotRequired[list[Any]]


class InputRequestTarget(TypedDict):
    instance_id: NotRequired[str]
    agent_type: NotRequired[str]
    skill_id: NotRequired[str]


class InputRequestExecutor(TypedDict):
    type: str
    id: str


class InputRequestApproval(TypedDict):
    principal: str
    resolution: str
    comment: NotRequired[str]
    at: str


class InputRequest(TypedDict):
    request_id: str
    kind: str
    source: str
    title: str
    prompt: str
    schema: NotRequired[dict[str, Any]]
    fields: NotRequired[list[InputRequestField]]
    tool: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]
    target: NotRequired[InputRequestTarget]
    executor: NotRequired[InputRequestExecutor]
    digest: NotRequired[str]
    policy_id: NotRequired[str]
    guard: NotRequired[str]
    approvers: NotRequired[list[str]]
    quorum: int
    approvals: list[InputRequestApproval]
    requested_at: str
    expires_at: str


class ApprovalRecordExecutor(TypedDict):
    type: str
    id: str


class ApprovalRecordOutcome(TypedDict):
    state: str
    error_code: NotRequired[str]
    at: NotRequired[str]


class ApprovalRecordPrincipal(TypedDict):
    type: str
    id: str


class ApprovalRecord(TypedDict):
    approval_id: str
    request_id: str
    kind: str
    source: str
    title: NotRequired[str]
    tool: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]
    executor: NotRequired[ApprovalRecordExecutor]
    truncated: NotRequired[Literal[True]]
    outcome: NotRequired[ApprovalRecordOutcome]
    resolution: str
    principal: ApprovalRecordPrincipal
    comment: NotRequired[str]
    digest: str
    arguments_changed: bool
    ip: NotRequired[str]
    decided_at: str


class ExportedApprovalExecutor(TypedDict):
    type: str
    id: str


class ExportedApprovalOutcome(TypedDict):
    state: str
    error_code: NotRequired[str]
    at: NotRequired[str]


class ExportedApprovalPrincipal(TypedDict):
    type: str
    id: str


class ExportedApproval(TypedDict):
    approval_id: str
    request_id: str
    kind: str
    source: str
    title: NotRequired[str]
    tool: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]
    executor: NotRequired[ExportedApprovalExecutor]
    truncated: NotRequired[Literal[True]]
    outcome: NotRequired[ExportedApprovalOutcome]
    resolution: str
    principal: ExportedApprovalPrincipal
    comment: NotRequired[str]
    digest: str
    arguments_changed: bool
    ip: NotRequired[str]
    decided_at: str
    tenant_id: str
    message_id: NotRequired[str]
    plan_id: NotRequired[str]


class AgentInstance(TypedDict):
    instance_id: str
    agent_type: str
    public_url: str | None
    deployment_mode: str
    tenant_id: str
    mesh_id: str | None
    status: str
    current_sessions: int
    max_concurrent_sessions: int
    max_concurrent_tasks: int
    consecutive_failures: int
    last_seen: str | None
    registered_at: str
    agent_version: str | None
    provider_organization: str | None
    provider_url: str | None
    agent_card: dict[str, Any]
    context: dict[str, Any]


class PlanError(TypedDict):
    code: str
    message: str


PlanProgress = TypedDict(
    'PlanProgress',
    {
        'total': int,
        'pending': int,
        'running': int,
        'input-required': int,
        'completed': int,
        'failed': int,
        'skipped': int,
    },
)


class PlanDecisionExecutor(TypedDict):
    type: str
    id: str


class PlanDecisionOutcome(TypedDict):
    state: str
    error_code: NotRequired[str]
    at: NotRequired[str]


class PlanDecisionPrincipal(TypedDict):
    type: str
    id: str


class PlanDecision(TypedDict):
    approval_id: str
    request_id: str
    kind: str
    source: str
    title: NotRequired[str]
    tool: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]
    executor: NotRequired[PlanDecisionExecutor]
    truncated: NotRequired[Literal[True]]
    outcome: NotRequired[PlanDecisionOutcome]
    resolution: str
    principal: PlanDecisionPrincipal
    comment: NotRequired[str]
    digest: str
    arguments_changed: bool
    decided_at: str


class PlanStepWorker(TypedDict):
    agent_type: str
    instance_id: str
    since: str


class PlanStepError(TypedDict):
    code: str
    message: str


class PlanStep(TypedDict):
    step_id: str
    index: int
    description: str
    agent_type: str | None
    instance_id: str | None
    skill_id: str | None
    message: list[Part]
    depends_on: list[str]
    requires_approval: bool
    timeout_seconds: int | None
    max_attempts: int
    state: str
    attempts: int
    message_id: str | None
    worker: NotRequired[PlanStepWorker]
    started_at: NotRequired[str]
    ended_at: NotRequired[str]
    duration_ms: NotRequired[int]
    error: NotRequired[PlanStepError]


class Plan(TypedDict):
    plan_id: str
    tenant_id: str
    session_id: str
    description: str
    state: str
    max_parallel: int
    auto_approve: bool
    created_by: str
    proposed_by: str | None
    created_at: str
    approval_expires_at: NotRequired[str]
    quorum: int
    approvers: list[str]
    approval_reason: NotRequired[str]
    started_at: NotRequired[str]
    ended_at: NotRequired[str]
    duration_ms: NotRequired[int]
    error: NotRequired[PlanError]
    failed_step: NotRequired[int]
    progress: PlanProgress
    input_request: NotRequired[InputRequest]
    decisions: list[PlanDecision]
    steps: list[PlanStep]


class PolicyMatchArguments(TypedDict):
    path: str
    op: str
    value: str | float | bool | None


class PolicyMatchArguments1(TypedDict):
    path: str
    op: str
    value: list[str | float | bool | None]


class PolicyMatchArguments2(TypedDict):
    path: str
    op: str
    value: float | str


class PolicyMatchArguments3(TypedDict):
    path: str
    op: str
    value: str


class PolicyMatchNotArguments(TypedDict):
    path: str
    op: str
    value: str | float | bool | None


class PolicyMatchNotArguments1(TypedDict):
    path: str
    op: str
    value: list[str | float | bool | None]


class PolicyMatchNotArguments2(TypedDict):
    path: str
    op: str
    value: float | str


class PolicyMatchNotArguments3(TypedDict):
    path: str
    op: str
    value: str


class PolicyMatchNot(TypedDict):
    tools: NotRequired[list[str]]
    agent_types: NotRequired[list[str]]
    instance_ids: NotRequired[list[str]]
    skills: NotRequired[list[str]]
    actions: NotRequired[list[str]]
    paths: NotRequired[list[str]]
    hosts: NotRequired[list[str]]
    arguments: NotRequired[list[PolicyMatchNotArguments | PolicyMatchNotArguments1 | PolicyMatchNotArguments2 | PolicyMatchNotArguments3]]


PolicyMatch = TypedDict(
    'PolicyMatch',
    {
        'tools': NotRequired[list[str]],
        'agent_types': NotRequired[list[str]],
        'instance_ids': NotRequired[list[str]],
        'skills': NotRequired[list[str]],
        'actions': NotRequired[list[str]],
        'paths': NotRequired[list[str]],
        'hosts': NotRequired[list[str]],
        'arguments': NotRequired[list[PolicyMatchArguments | PolicyMatchArguments1 | PolicyMatchArguments2 | PolicyMatchArguments3]],
        'not': NotRequired[PolicyMatchNot],
    },
)


class PolicyEvaluatorApproval(TypedDict):
    quorum: int
    timeout_seconds: int
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: bool
    on_reject: str


class PolicyEvaluator(TypedDict):
    approval: NotRequired[PolicyEvaluatorApproval]
    type: Literal['cel']
    expression: str
    on_error: str


class PolicyEvaluator1Approval(TypedDict):
    quorum: int
    timeout_seconds: int
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: bool
    on_reject: str


class PolicyEvaluator1(TypedDict):
    approval: NotRequired[PolicyEvaluator1Approval]
    type: Literal['webhook']
    url: str
    secret: NotRequired[str | None]
    timeout_ms: int
    on_error: str
    secret_set: NotRequired[bool]


class PolicyEvaluator2Approval(TypedDict):
    quorum: int
    timeout_seconds: int
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: bool
    on_reject: str


class PolicyEvaluator2(TypedDict):
    approval: NotRequired[PolicyEvaluator2Approval]


class Policy(TypedDict):
    policy_id: str
    tenant_id: str
    scope: str
    name: str
    decision: str
    description: str
    match: PolicyMatch
    reason: str
    approvers: list[str]
    evaluator: PolicyEvaluator | PolicyEvaluator1 | PolicyEvaluator2
    priority: int
    enabled: bool
    end_at: NotRequired[str]
    max_calls: NotRequired[int]
    calls_allowed: NotRequired[int]
    created_at: str
    updated_at: str
    updated_by: str | None


class GuardPathConfig(TypedDict):
    allowed_roots: list[str]


class GuardPath(TypedDict):
    guard: Literal['path']
    enabled: bool
    decision: str
    config: GuardPathConfig
    updated_at: str | None
    updated_by: str | None


class GuardEgressConfig(TypedDict):
    allowed_hosts: list[str]
    denied_hosts: list[str]
    stages: list[str]


class GuardEgress(TypedDict):
    guard: Literal['egress']
    enabled: bool
    decision: str
    config: GuardEgressConfig
    updated_at: str | None
    updated_by: str | None


class GuardSecretsConfig(TypedDict):
    detect: list[str]
    stages: list[str]


class GuardSecrets(TypedDict):
    guard: Literal['secrets']
    enabled: bool
    decision: str
    config: GuardSecretsConfig
    updated_at: str | None
    updated_by: str | None


class GuardPromptInjectionConfig(TypedDict):
    stages: list[str]


class GuardPromptInjection(TypedDict):
    guard: Literal['prompt_injection']
    enabled: bool
    decision: str
    config: GuardPromptInjectionConfig
    updated_at: str | None
    updated_by: str | None


class GuardLimitsConfig(TypedDict):
    max_message_bytes: int
    max_output_bytes: int
    max_argument_bytes: int
    max_result_bytes: int
    max_depth: int
    max_hops: int
    max_repeated_calls: int | None


class GuardLimits(TypedDict):
    guard: Literal['limits']
    enabled: bool
    decision: str
    config: GuardLimitsConfig
    updated_at: str | None
    updated_by: str | None


Guard: TypeAlias = GuardPath | GuardEgress | GuardSecrets | GuardPromptInjection | GuardLimits


class AlertRuleCondition(TypedDict):
    event: str
    filters: NotRequired[dict[str, Any]]


class AlertRuleNotificationConfig(TypedDict):
    url: NotRequired[str]
    channel_id: NotRequired[str]
    recipients: NotRequired[list[str]]
    max_attempts: NotRequired[int]


class AlertRuleNotificationReceiver(TypedDict):
    state: Literal['unavailable']
    since: str
    next_probe_at: str


class AlertRuleNotification(TypedDict):
    channel_id: str
    type: str
    enabled: bool
    config: AlertRuleNotificationConfig
    secrets_set: list[str]
    unreadable: NotRequired[Literal[True]]
    receiver: NotRequired[AlertRuleNotificationReceiver]


class AlertRule(TypedDict):
    rule_id: str
    tenant_id: str
    name: str
    description: str
    condition: AlertRuleCondition
    notifications: list[AlertRuleNotification]
    severity: str
    threshold: int
    window_seconds: int
    cooldown_seconds: int
    approvers: list[str]
    writers: list[str]
    enabled: bool
    created_at: str
    updated_at: str
    updated_by: str | None


class DeliveryAttempt(TypedDict):
    at: str
    status_code: int | None
    response_time_ms: int
    success: bool
    error: NotRequired[str]


class DeliveryReceiver(TypedDict):
    state: Literal['unavailable']
    since: str
    next_probe_at: str


class Delivery(TypedDict):
    delivery_id: str
    rule_id: str | None
    task_id: NotRequired[str]
    config_id: NotRequired[str]
    event_type: str
    url: str
    status: str
    attempts: list[DeliveryAttempt]
    created_at: str
    next_attempt_at: NotRequired[str]
    receiver: NotRequired[DeliveryReceiver]


class EventRecord(TypedDict):
    event_id: str
    source: str
    severity: str
    tenant_id: str
    session_id: str
    timestamp: str
    trace_id: NotRequired[str]
    event_type: str
    type: str
    category: str
    event: dict[str, Any]


class UsageRow(TypedDict):
    agent_type: NotRequired[str | None]
    model: NotRequired[str | None]
    instance_id: NotRequired[str | None]
    day: NotRequired[str | None]
    session: NotRequired[str | None]
    user: NotRequired[str | None]
    credential: NotRequired[str | None]
    messages: int
    dispatches: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    duration_ms: int
    cost_usd: float


class ModelPrice(TypedDict):
    model: str
    input_per_million: float
    output_per_million: float


class KnowledgeBaseConfig(TypedDict):
    top_k: int
    min_score: float
    mode: NotRequired[str]
    chunk_tokens: int
    chunk_overlap: int


class KnowledgeBase(TypedDict):
    namespace: str
    display_name: str
    description: str
    visibility: str
    config: KnowledgeBaseConfig
    created_at: str
    updated_at: str


class SearchResultScores(TypedDict):
    semantic: NotRequired[float]
    lexical: NotRequired[float]


class SearchResultCitation(TypedDict):
    url: NotRequired[str]
    filename: NotRequired[str]
    page_start: NotRequired[int]
    page_end: NotRequired[int]
    heading_path: list[str]
    char_start: int
    char_end: int


class SearchResult(TypedDict):
    text: str
    source_id: str
    score: float
    tags: list[str]
    chunk_id: str
    namespace: str
    scores: SearchResultScores
    title: str
    metadata: dict[str, Any]
    citation: SearchResultCitation


class KnowledgeStats(TypedDict):
    sources: int
    chunks: int
    tokens: int
    bytes: int
    embedding_model: str | None
    dimensions: int | None
    stale_chunks: int
    last_ingested_at: str | None


class KnowledgeSource(TypedDict):
    source_id: str
    status: Literal['completed']
    chunk_count: int
    tags: list[str]
    created_at: str
    updated_at: str
    title: str
    filename: NotRequired[str]
    url: NotRequired[str]
    content_type: str
    source_type: NotRequired[str]
    metadata: dict[str, Any]
    content_hash: str
    tokens: int
    bytes: int
    stale: bool


class AuthGetTokenRequest(TypedDict):
    client_id: str
    client_secret: str
    agent_type: NotRequired[str]
    tenant_id: NotRequired[str]
    scopes: NotRequired[list[Literal['read', 'admin', 'full']]]
    expires_in: NotRequired[int]
    user_id: NotRequired[str]
    session_id: NotRequired[str]
    agent_types: NotRequired[list[str]]


class AuthGetTokenResponse(TypedDict):
    token: str
    token_type: Literal['Bearer']
    expires_in: int
    scopes: list[str]


class AuthJwksResponse(TypedDict):
    keys: list[dict[str, Any]]


class AuthRevokeUserRequest(TypedDict):
    user_id: str


class AuthRevokeUserResponse(TypedDict):
    ok: Literal[True]
    user_id: str


class CredentialsCreateRequest(TypedDict):
    name: str
    scopes: list[Literal['read', 'admin', 'full']]
    agent_types: NotRequired[list[Literal['*'] | str]]
    expires_at: NotRequired[str]


class CredentialsCreateResponse(TypedDict):
    ok: Literal[True]
    credential: Credential
    client_secret: str


class CredentialsGetRequest(TypedDict):
    page: NotRequired[int]
    page_size: NotRequired[int]


class CredentialsGetResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    credentials: list[Credential]


class CredentialsRotateRequest(TypedDict):
    credential_id: str
    overlap_seconds: NotRequired[int]


class CredentialsRotateResponse(TypedDict):
    ok: Literal[True]
    credential: Credential
    client_secret: str


class CredentialsRevokeRequest(TypedDict):
    credential_id: str


class CredentialsRevokeResponse(TypedDict):
    ok: Literal[True]
    credential_id: str


class SessionsInitRequest(TypedDict):
    instance_id: NotRequired[str]
    agent_type: NotRequired[str]
    user_id: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]
    ordered: NotRequired[bool]
    reserve: NotRequired[bool]
    idle_timeout_seconds: NotRequired[int]


class SessionsInitResponse(TypedDict):
    ok: Literal[True]
    session_id: str
    instance_id: str | None
    agent_type: str | None
    session: SessionSummary


class SessionsGetRequest(TypedDict):
    status: NotRequired[Literal['active', 'paused', 'completed', 'expired']]
    agent_type: NotRequired[str]
    since: NotRequired[str]
    until: NotRequired[str]
    user_id: NotRequired[str]
    credential_id: NotRequired[str]
    page: NotRequired[int]
    page_size: NotRequired[int]
    cursor: NotRequired[str]


class SessionsGetResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    sessions: list[SessionSummary]
    next_cursor: NotRequired[str]


class SessionsGetByIdRequest(TypedDict):
    session_id: str


class SessionsGetByIdResponse(TypedDict):
    ok: Literal[True]
    session: SessionDetails


class SessionsCloseRequest(TypedDict):
    session_id: str
    reason: NotRequired[str]


class SessionsCloseResponse(TypedDict):
    ok: Literal[True]
    session_id: str
    status: Literal['completed']


class SessionsInterruptRequest(TypedDict):
    ids: NotRequired[list[str]]
    session_id: NotRequired[str]


class SessionsInterruptResponse(TypedDict):
    ok: Literal[True]
    requested: int
    interrupted: int
    session_ids: list[str]


class SessionsInviteRequest(TypedDict):
    session_id: str
    agent_type: str
    instance_id: NotRequired[str]


class SessionsInviteResponseAgent(TypedDict):
    agent_type: str
    instance_id: str
    joined_at: str
    join_reason: str


class SessionsInviteResponse(TypedDict):
    ok: Literal[True]
    session_id: str
    agent: SessionsInviteResponseAgent


class MessagesGetRequest(TypedDict):
    session_id: NotRequired[str]
    state: NotRequired[Literal['submitted', 'working', 'input-required', 'completed', 'failed', 'canceled']]
    agent_type: NotRequired[str]
    instance_id: NotRequired[str]
    error_code: NotRequired[str]
    since: NotRequired[str]
    until: NotRequired[str]
    user_id: NotRequired[str]
    credential_id: NotRequired[str]
    client_message_id: NotRequired[str]
    text: NotRequired[str]
    waits_for: NotRequired[Literal['agent', 'room', 'turn', 'evaluator', 'quota', 'person']]
    waited_ms: NotRequired[int]
    page: NotRequired[int]
    page_size: NotRequired[int]
    cursor: NotRequired[str]


class MessagesGetByIdRequest(TypedDict):
    message_id: str


class MessagesCancelRequest(TypedDict):
    message_id: str
    reason: NotRequired[str]


class MessagesCancelResponse(TypedDict):
    ok: Literal[True]
    message_id: str


class MessagesRetryRequest(TypedDict):
    message_id: str
    idempotency_key: NotRequired[str]
    confirm: NotRequired[bool]


class MessagesRetryResponse(TypedDict):
    ok: Literal[True]
    message_id: str
    session_id: str
    retry_of: str


class MessagesPendingRequest(TypedDict):
    session_id: NotRequired[str]
    user_id: NotRequired[str]
    credential_id: NotRequired[str]
    limit: NotRequired[int]
    offset: NotRequired[int]


class MessagesGetGroupsRequest(TypedDict):
    by: Literal['error_code', 'waits_for', 'agent_type']
    state: NotRequired[Literal['submitted', 'working', 'input-required', 'completed', 'failed', 'canceled']]
    since: NotRequired[str]
    waited_ms: NotRequired[int]


class MessagesGetGroupsResponseGroup(TypedDict):
    key: str
    count: int
    oldest_at: str
    newest_at: str
    sample_message_id: str


class MessagesGetGroupsResponse(TypedDict):
    ok: Literal[True]
    groups: list[MessagesGetGroupsResponseGroup]


class MessagesGetRatesRequest(TypedDict):
    hours: NotRequired[int]


class MessagesGetRatesResponseHourLatencyMs(TypedDict):
    p50: float | None
    p95: float | None


class MessagesGetRatesResponseHour(TypedDict):
    hour: str
    accepted: int
    failed: int
    latency_ms: MessagesGetRatesResponseHourLatencyMs


class MessagesGetRatesResponse(TypedDict):
    ok: Literal[True]
    hours: list[MessagesGetRatesResponseHour]


class MessagesResolveRequest(TypedDict):
    resolution: str | dict[str, Any]
    request_id: NotRequired[str]
    callback_token: NotRequired[str]
    comment: NotRequired[str]
    data: NotRequired[dict[str, Any]]
    arguments: NotRequired[dict[str, Any]]
    digest: NotRequired[str]


class MessagesResolveResponse(TypedDict):
    ok: Literal[True]
    message_id: str
    plan_id: NotRequired[str]
    new_state: str
    resolution: str | dict[str, Any]


class MessagesGetApprovalsRequest(TypedDict):
    message_id: NotRequired[str]
    plan_id: NotRequired[str]


class MessagesGetApprovalsResponse(TypedDict):
    ok: Literal[True]
    approvals: list[ApprovalRecord]


class MessagesGetHeldOutputRequest(TypedDict):
    message_id: str


class MessagesGetHeldOutputResponseOutputStatusMessage(TypedDict):
    kind: Literal['message']
    messageId: str
    role: str
    parts: list[Part]
    contextId: NotRequired[str]
    taskId: NotRequired[str]
    referenceTaskIds: NotRequired[list[str]]
    extensions: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]


class MessagesGetHeldOutputResponseOutputInputRequestField(TypedDict):
    id: str
    type: str
    label: NotRequired[str]
    options: NotRequired[list[Any]]


class MessagesGetHeldOutputResponseOutputInputRequest(TypedDict):
    kind: NotRequired[str]
    title: NotRequired[str]
    prompt: NotRequired[str]
    schema: NotRequired[dict[str, Any]]
    fields: NotRequired[list[MessagesGetHeldOutputResponseOutputInputRequestField]]
    tool: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]


class MessagesGetHeldOutputResponseOutput(TypedDict):
    state: str
    artifacts: list[Artifact]
    status_message: NotRequired[MessagesGetHeldOutputResponseOutputStatusMessage]
    input_request: NotRequired[MessagesGetHeldOutputResponseOutputInputRequest]


class MessagesGetHeldOutputResponse(TypedDict):
    ok: Literal[True]
    request_id: str
    digest: str
    output: MessagesGetHeldOutputResponseOutput


class MessagesExportApprovalsRequest(TypedDict):
    since: NotRequired[str]
    until: NotRequired[str]


MessagesExportApprovalsItem: TypeAlias = ExportedApproval


class RequestsGetRequest(TypedDict):
    state: NotRequired[Literal['open', 'decided', 'expired', 'withdrawn', 'all']]
    mine: NotRequired[bool]
    approver: NotRequired[str]
    tool: NotRequired[str]
    agent_type: NotRequired[str]
    user_id: NotRequired[str]
    session_id: NotRequired[str]
    kind: NotRequired[Literal['approval', 'form', 'confirmation']]
    source: NotRequired[Literal['policy', 'guard', 'agent', 'plan']]
    before: NotRequired[str]
    after: NotRequired[str]
    sort: NotRequired[Literal['oldest', 'newest', 'expires']]
    page_size: NotRequired[int]
    cursor: NotRequired[str]


class RequestsGetResponseRequestSentBy(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class RequestsGetResponseRequestDecidedPrincipal(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class RequestsGetResponseRequestDecided(TypedDict):
    resolution: str
    principals: list[RequestsGetResponseRequestDecidedPrincipal]
    at: str
    comment: NotRequired[str]


class RequestsGetResponseRequestOutcome(TypedDict):
    state: str
    error_code: NotRequired[str]
    at: NotRequired[str]


class RequestsGetResponseRequest(TypedDict):
    request_id: str
    message_id: NotRequired[str]
    plan_id: NotRequired[str]
    session_id: str
    agent_type: NotRequired[str]
    user_id: NotRequired[str]
    sent_by: RequestsGetResponseRequestSentBy
    state: str
    input_request: InputRequest
    about: str
    may_answer: bool
    decided: NotRequired[RequestsGetResponseRequestDecided]
    outcome: NotRequired[RequestsGetResponseRequestOutcome]
    truncated: NotRequired[Literal[True]]


class RequestsGetResponse(TypedDict):
    ok: Literal[True]
    requests: list[RequestsGetResponseRequest]
    next_cursor: NotRequired[str]
    count: NotRequired[int]
    count_estimated: NotRequired[Literal[True]]


class RequestsGetByIdRequest(TypedDict):
    request_id: str


class RequestsGetByIdResponseRequestSentBy(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class RequestsGetByIdResponseRequestDecidedPrincipal(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class RequestsGetByIdResponseRequestDecided(TypedDict):
    resolution: str
    principals: list[RequestsGetByIdResponseRequestDecidedPrincipal]
    at: str
    comment: NotRequired[str]


class RequestsGetByIdResponseRequestOutcome(TypedDict):
    state: str
    error_code: NotRequired[str]
    at: NotRequired[str]


class RequestsGetByIdResponseRequest(TypedDict):
    request_id: str
    message_id: NotRequired[str]
    plan_id: NotRequired[str]
    session_id: str
    agent_type: NotRequired[str]
    user_id: NotRequired[str]
    sent_by: RequestsGetByIdResponseRequestSentBy
    state: str
    input_request: InputRequest
    about: str
    may_answer: bool
    decided: NotRequired[RequestsGetByIdResponseRequestDecided]
    outcome: NotRequired[RequestsGetByIdResponseRequestOutcome]
    truncated: NotRequired[Literal[True]]


class RequestsGetByIdResponse(TypedDict):
    ok: Literal[True]
    request: RequestsGetByIdResponseRequest


class RequestsGetSimilarRequest(TypedDict):
    request_id: str


class RequestsGetSimilarResponseRequestSentBy(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class RequestsGetSimilarResponseRequestDecidedPrincipal(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class RequestsGetSimilarResponseRequestDecided(TypedDict):
    resolution: str
    principals: list[RequestsGetSimilarResponseRequestDecidedPrincipal]
    at: str
    comment: NotRequired[str]


class RequestsGetSimilarResponseRequestOutcome(TypedDict):
    state: str
    error_code: NotRequired[str]
    at: NotRequired[str]


class RequestsGetSimilarResponseRequest(TypedDict):
    request_id: str
    message_id: NotRequired[str]
    plan_id: NotRequired[str]
    session_id: str
    agent_type: NotRequired[str]
    user_id: NotRequired[str]
    sent_by: RequestsGetSimilarResponseRequestSentBy
    state: str
    input_request: InputRequest
    about: str
    may_answer: bool
    decided: NotRequired[RequestsGetSimilarResponseRequestDecided]
    outcome: NotRequired[RequestsGetSimilarResponseRequestOutcome]
    truncated: NotRequired[Literal[True]]


class RequestsGetSimilarResponse(TypedDict):
    ok: Literal[True]
    requests: list[RequestsGetSimilarResponseRequest]


class RequestsResolveManyRequest(TypedDict):
    request_ids: list[str]
    resolution: str
    comment: NotRequired[str]
    dry_run: NotRequired[bool]


class RequestsResolveManyResponseResult(TypedDict):
    request_id: str
    ok: bool
    code: NotRequired[str]


class RequestsResolveManyResponse(TypedDict):
    ok: Literal[True]
    results: list[RequestsResolveManyResponseResult]


class RequestsGetReceiptRequest(TypedDict):
    request_id: str


class RequestsGetReceiptResponse(TypedDict):
    ok: Literal[True]
    receipt: str
    salt: str


class AgentsRegisterRequestSkill(TypedDict):
    id: str
    name: NotRequired[str]


class AgentsRegisterRequestTools(TypedDict):
    name: str
    description: NotRequired[str]
    input_schema: NotRequired[dict[str, Any]]


class AgentsRegisterRequestDispatchAuth(TypedDict):
    type: Literal['bearer_jwt']


class AgentsRegisterRequestDispatchAuth1(TypedDict):
    type: Literal['api_key']
    name: str
    value: str


class AgentsRegisterRequestDispatchAuth2(TypedDict):
    type: Literal['oauth2_client_credentials']
    token_url: str
    client_id: str
    client_secret: str
    scope: NotRequired[str]


class AgentsRegisterRequest(TypedDict):
    agent_type: str
    instance_id: NotRequired[str]
    deployment_mode: NotRequired[Literal['hosted', 'connected']]
    public_url: NotRequired[str]
    url: NotRequired[str]
    agent_card: NotRequired[dict[str, Any]]
    skills: NotRequired[list[AgentsRegisterRequestSkill]]
    tools: NotRequired[list[str | AgentsRegisterRequestTools]]
    max_concurrent_sessions: NotRequired[int]
    max_concurrent_tasks: NotRequired[int]
    agent_version: NotRequired[str]
    provider_organization: NotRequired[str]
    provider_url: NotRequired[str]
    context: NotRequired[dict[str, Any]]
    dispatch_auth: NotRequired[AgentsRegisterRequestDispatchAuth | AgentsRegisterRequestDispatchAuth1 | AgentsRegisterRequestDispatchAuth2]


class AgentsRegisterResponseDispatchAuth(TypedDict):
    type: Literal['bearer_jwt']


class AgentsRegisterResponseDispatchAuth1(TypedDict):
    type: Literal['api_key']
    name: str


class AgentsRegisterResponseDispatchAuth2(TypedDict):
    type: Literal['oauth2_client_credentials']
    token_url: str
    client_id: str
    scope: NotRequired[str]


class AgentsRegisterResponse(TypedDict):
    ok: Literal[True]
    tenant_id: str
    instance_id: str
    deployment_mode: str
    connect_url: str | None
    jwks_url: str
    dispatch_auth: AgentsRegisterResponseDispatchAuth | AgentsRegisterResponseDispatchAuth1 | AgentsRegisterResponseDispatchAuth2
    agent: AgentInstance
    warnings: NotRequired[list[str]]


class AgentsHeartbeatRequestForm1(TypedDict):
    instance_id: str
    status: NotRequired[Literal['available', 'busy', 'draining', 'unhealthy']]
    current_sessions: NotRequired[int]
    max_concurrent_sessions: NotRequired[int]
    max_concurrent_tasks: NotRequired[int]
    consecutive_failures: NotRequired[int]


class AgentsHeartbeatRequestForm2Payload(TypedDict):
    instance_id: str
    status: NotRequired[Literal['available', 'busy', 'draining', 'unhealthy']]
    current_sessions: NotRequired[int]
    max_concurrent_sessions: NotRequired[int]
    max_concurrent_tasks: NotRequired[int]
    consecutive_failures: NotRequired[int]


class AgentsHeartbeatRequestForm2(TypedDict):
    v: Literal[1]
    type: NotRequired[str]
    id: NotRequired[str]
    ts: NotRequired[str]
    payload: AgentsHeartbeatRequestForm2Payload


AgentsHeartbeatRequest: TypeAlias = AgentsHeartbeatRequestForm1 | AgentsHeartbeatRequestForm2


class AgentsHeartbeatResponse(TypedDict):
    ok: Literal[True]


class AgentsGetRequest(TypedDict):
    page: NotRequired[int]
    page_size: NotRequired[int]
    status: NotRequired[Literal['available', 'busy', 'draining', 'unhealthy', 'offline', 'unknown']]
    agent_type: NotRequired[str]
    deployment_mode: NotRequired[Literal['hosted', 'connected']]
    failing: NotRequired[Literal[True]]
    registered: NotRequired[bool]


class AgentsGetResponseAgentLatencyMs(TypedDict):
    p50: float | None
    p95: float | None


class AgentsGetResponseAgent(TypedDict):
    instance_id: str
    agent_type: str
    public_url: str | None
    deployment_mode: str
    tenant_id: str
    mesh_id: str | None
    status: str
    current_sessions: int
    max_concurrent_sessions: int
    max_concurrent_tasks: int
    consecutive_failures: int
    last_seen: str | None
    registered_at: str
    agent_version: str | None
    provider_organization: str | None
    provider_url: str | None
    agent_card: dict[str, Any]
    context: dict[str, Any]
    queue_length: int
    in_flight: int
    sent_per_minute: int
    failed_last_hour: int
    latency_ms: AgentsGetResponseAgentLatencyMs
    last_error: NotRequired[str]
    failing_since: NotRequired[str]


class AgentsGetResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    agents: list[AgentsGetResponseAgent]


class AgentsGetTypesRequest(TypedDict):
    pass


class AgentsGetTypesResponseAgentType(TypedDict):
    agent_type: str
    instances: int
    online: int
    draining: int
    unhealthy: int
    in_flight: int
    max_concurrent_sessions: int | None
    queue_length: int
    queued_since: NotRequired[str]
    failed_last_hour: int
    last_error: NotRequired[str]
    failing: int
    failing_since: NotRequired[str]


class AgentsGetTypesResponse(TypedDict):
    ok: Literal[True]
    agent_types: list[AgentsGetTypesResponseAgentType]


class AgentsGetByIdRequest(TypedDict):
    instance_id: str


class AgentsGetByIdResponse(TypedDict):
    ok: Literal[True]
    agent: AgentInstance


class AgentsDeregisterRequest(TypedDict):
    instance_id: str
    reason: NotRequired[str]


class AgentsDeregisterResponse(TypedDict):
    ok: Literal[True]
    instance_id: str


class AgentsDrainRequest(TypedDict):
    instance_id: str


class AgentsDrainResponse(TypedDict):
    ok: Literal[True]
    instance_id: str
    status: str


class AgentsUndrainRequest(TypedDict):
    instance_id: str


class AgentsUndrainResponse(TypedDict):
    ok: Literal[True]
    instance_id: str
    status: str


class AgentsGetConnectionRequest(TypedDict):
    instance_id: str


class AgentsGetConnectionResponseConnectionLatencyMs(TypedDict):
    p50: float | None
    p95: float | None
    count: int
    window_seconds: Literal[3600]


class AgentsGetConnectionResponseConnection(TypedDict):
    transport: str
    connection_status: str
    degraded_reason: NotRequired[str]
    owner_mesh_id: str | None
    connected_since: str | None
    last_dispatch_at: str | None
    dispatches_succeeded: int
    dispatches_failed: int
    last_dispatch_error: str | None
    latency_ms: AgentsGetConnectionResponseConnectionLatencyMs
    status: str
    last_seen: str | None


class AgentsGetConnectionResponse(TypedDict):
    ok: Literal[True]
    connection: AgentsGetConnectionResponseConnection


class AgentsGetConnectionStatsRequest(TypedDict):
    agent_type: NotRequired[str]


class AgentsGetConnectionStatsResponseStatsByTransport(TypedDict):
    ws: int
    callback: int


class AgentsGetConnectionStatsResponseStats(TypedDict):
    total: int
    by_deployment_mode: dict[str, int]
    by_status: dict[str, int]
    by_transport: AgentsGetConnectionStatsResponseStatsByTransport


class AgentsGetConnectionStatsResponse(TypedDict):
    ok: Literal[True]
    stats: AgentsGetConnectionStatsResponseStats


class AgentsAllowTypeRequest(TypedDict):
    agent_type: str


class AgentsAllowTypeResponse(TypedDict):
    ok: Literal[True]
    agent_type: str
    was_new: bool


class AgentsDisallowTypeRequest(TypedDict):
    agent_type: str


class AgentsDisallowTypeResponse(TypedDict):
    ok: Literal[True]
    agent_type: str
    removed_from_policy: bool
    deregistered_count: int


class AgentsSetDefaultRequest(TypedDict):
    agent_type: str | None


class AgentsSetDefaultResponse(TypedDict):
    ok: Literal[True]
    default_agent_type: str | None


class ToolsGetRequest(TypedDict):
    pass


class ToolsGetResponseTool(TypedDict):
    name: str
    offered_by: list[str]
    source: str
    description: NotRequired[str]
    input_schema: NotRequired[dict[str, Any]]
    digest: str
    owners: NotRequired[list[str]]


class ToolsGetResponse(TypedDict):
    ok: Literal[True]
    tools: list[ToolsGetResponseTool]


class ToolsSetOwnerRequest(TypedDict):
    tool: str
    agent_types: list[str] | None


class ToolsSetOwnerResponse(TypedDict):
    ok: Literal[True]
    tool: str
    agent_types: list[str] | None


class ToolsCallRequestTarget(TypedDict):
    instance_id: NotRequired[str]
    agent_type: NotRequired[str]
    skill_id: NotRequired[str]


class ToolsCallRequest(TypedDict):
    tool: str
    arguments: NotRequired[dict[str, Any]]
    target: NotRequired[ToolsCallRequestTarget | None]
    dispatch_id: NotRequired[str | None]
    session_id: NotRequired[str | None]
    deadline_ms: NotRequired[int | None]
    idempotency_key: NotRequired[str | None]
    instance_id: NotRequired[str]


@final
class ToolsCallResponseForm1(TypedDict):
    ok: Literal[True]
    result: Any


class ToolsCallResponseForm2Error(TypedDict):
    code: str
    message: str
    policy_id: NotRequired[str]
    retryable: bool
    approved: NotRequired[Literal[True]]


@final
class ToolsCallResponseForm2(TypedDict):
    ok: Literal[False]
    error: ToolsCallResponseForm2Error


ToolsCallResponse: TypeAlias = ToolsCallResponseForm1 | ToolsCallResponseForm2


class PlansCreateRequestStep(TypedDict):
    step_id: NotRequired[str]
    description: str
    agent_type: NotRequired[str]
    instance_id: NotRequired[str]
    skill_id: NotRequired[str]
    message: str | list[Part]
    depends_on: NotRequired[list[str]]
    requires_approval: NotRequired[bool]
    timeout_seconds: NotRequired[int]
    max_attempts: NotRequired[int]


class PlansCreateRequest(TypedDict):
    session_id: str
    description: str
    steps: list[PlansCreateRequestStep]
    max_parallel: NotRequired[int]
    auto_approve: NotRequired[bool]


class PlansCreateResponse(TypedDict):
    ok: Literal[True]
    plan: Plan


class PlansGetRequest(TypedDict):
    session_id: NotRequired[str]
    state: NotRequired[Literal['proposed', 'running', 'completed', 'failed', 'canceled', 'rejected']]
    since: NotRequired[str]
    until: NotRequired[str]
    page: NotRequired[int]
    page_size: NotRequired[int]
    cursor: NotRequired[str]


class PlansGetResponsePlanError(TypedDict):
    code: str
    message: str


PlansGetResponsePlanProgress = TypedDict(
    'PlansGetResponsePlanProgress',
    {
        'total': int,
        'pending': int,
        'running': int,
        'input-required': int,
        'completed': int,
        'failed': int,
        'skipped': int,
    },
)


class PlansGetResponsePlan(TypedDict):
    plan_id: str
    tenant_id: str
    session_id: str
    description: str
    state: str
    max_parallel: int
    auto_approve: bool
    created_by: str
    proposed_by: str | None
    created_at: str
    approval_expires_at: NotRequired[str]
    quorum: int
    approvers: list[str]
    approval_reason: NotRequired[str]
    started_at: NotRequired[str]
    ended_at: NotRequired[str]
    duration_ms: NotRequired[int]
    error: NotRequired[PlansGetResponsePlanError]
    failed_step: NotRequired[int]
    progress: PlansGetResponsePlanProgress


class PlansGetResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    plans: list[PlansGetResponsePlan]
    next_cursor: NotRequired[str]


class PlansGetByIdRequest(TypedDict):
    plan_id: str


class PlansGetByIdResponse(TypedDict):
    ok: Literal[True]
    plan: Plan


class PlansApproveRequest(TypedDict):
    plan_id: str
    comment: NotRequired[str]


class PlansApproveResponse(TypedDict):
    ok: Literal[True]
    plan: Plan


class PlansRejectRequest(TypedDict):
    plan_id: str
    comment: NotRequired[str]


class PlansRejectResponse(TypedDict):
    ok: Literal[True]
    plan: Plan


class PlansCancelRequest(TypedDict):
    plan_id: str
    reason: NotRequired[str]


class PlansCancelResponse(TypedDict):
    ok: Literal[True]
    plan: Plan


class PoliciesCreatePolicyRequestMatchArguments(TypedDict):
    path: str
    op: Literal['eq', 'ne', 'contains']
    value: str | float | bool | None


class PoliciesCreatePolicyRequestMatchArguments1(TypedDict):
    path: str
    op: Literal['in']
    value: list[str | float | bool | None]


class PoliciesCreatePolicyRequestMatchArguments2(TypedDict):
    path: str
    op: Literal['gt', 'gte', 'lt', 'lte']
    value: float | str


class PoliciesCreatePolicyRequestMatchArguments3(TypedDict):
    path: str
    op: Literal['matches']
    value: str


class PoliciesCreatePolicyRequestMatchNotArguments(TypedDict):
    path: str
    op: Literal['eq', 'ne', 'contains']
    value: str | float | bool | None


class PoliciesCreatePolicyRequestMatchNotArguments1(TypedDict):
    path: str
    op: Literal['in']
    value: list[str | float | bool | None]


class PoliciesCreatePolicyRequestMatchNotArguments2(TypedDict):
    path: str
    op: Literal['gt', 'gte', 'lt', 'lte']
    value: float | str


class PoliciesCreatePolicyRequestMatchNotArguments3(TypedDict):
    path: str
    op: Literal['matches']
    value: str


class PoliciesCreatePolicyRequestMatchNot(TypedDict):
    tools: NotRequired[list[str]]
    agent_types: NotRequired[list[str]]
    instance_ids: NotRequired[list[str]]
    skills: NotRequired[list[str]]
    actions: NotRequired[list[str]]
    paths: NotRequired[list[str]]
    hosts: NotRequired[list[str]]
    arguments: NotRequired[list[PoliciesCreatePolicyRequestMatchNotArguments | PoliciesCreatePolicyRequestMatchNotArguments1 | PoliciesCreatePolicyRequestMatchNotArguments2 | PoliciesCreatePolicyRequestMatchNotArguments3]]


PoliciesCreatePolicyRequestMatch = TypedDict(
    'PoliciesCreatePolicyRequestMatch',
    {
        'tools': NotRequired[list[str]],
        'agent_types': NotRequired[list[str]],
        'instance_ids': NotRequired[list[str]],
        'skills': NotRequired[list[str]],
        'actions': NotRequired[list[str]],
        'paths': NotRequired[list[str]],
        'hosts': NotRequired[list[str]],
        'arguments': NotRequired[list[PoliciesCreatePolicyRequestMatchArguments | PoliciesCreatePolicyRequestMatchArguments1 | PoliciesCreatePolicyRequestMatchArguments2 | PoliciesCreatePolicyRequestMatchArguments3]],
        'not': NotRequired[PoliciesCreatePolicyRequestMatchNot],
    },
)


class PoliciesCreatePolicyRequestEvaluatorApproval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesCreatePolicyRequestEvaluator(TypedDict):
    approval: NotRequired[PoliciesCreatePolicyRequestEvaluatorApproval]
    type: Literal['cel']
    expression: str
    on_error: NotRequired[Literal['deny', 'require_approval']]


class PoliciesCreatePolicyRequestEvaluator1Approval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesCreatePolicyRequestEvaluator1(TypedDict):
    approval: NotRequired[PoliciesCreatePolicyRequestEvaluator1Approval]
    type: Literal['webhook']
    url: str
    secret: NotRequired[str | None]
    timeout_ms: NotRequired[int]
    on_error: NotRequired[Literal['deny', 'require_approval']]
    secret_set: NotRequired[bool]


class PoliciesCreatePolicyRequestEvaluator2Approval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesCreatePolicyRequestEvaluator2(TypedDict):
    approval: NotRequired[PoliciesCreatePolicyRequestEvaluator2Approval]


class PoliciesCreatePolicyRequest(TypedDict):
    name: str
    decision: Literal['allow', 'deny', 'require_approval', 'audit']
    description: NotRequired[str]
    match: NotRequired[PoliciesCreatePolicyRequestMatch]
    reason: NotRequired[str]
    approvers: NotRequired[list[str]]
    evaluator: NotRequired[PoliciesCreatePolicyRequestEvaluator | PoliciesCreatePolicyRequestEvaluator1 | PoliciesCreatePolicyRequestEvaluator2]
    priority: NotRequired[int]
    enabled: NotRequired[bool]
    end_at: NotRequired[str | None]
    max_calls: NotRequired[int | None]
    tenant_id: NotRequired[str]
    scope: Literal['admission', 'dispatch', 'tool', 'plan', 'session']


class PoliciesCreatePolicyResponse(TypedDict):
    policy: Policy


class PoliciesGetPoliciesRequest(TypedDict):
    page: NotRequired[int]
    page_size: NotRequired[int]
    tenant_id: NotRequired[str]
    scope: NotRequired[Literal['admission', 'dispatch', 'tool', 'plan', 'session']]
    enabled: NotRequired[bool]


class PoliciesGetPoliciesResponse(TypedDict):
    count: int
    page: int
    page_size: int
    total_pages: int
    policies: list[Policy]


class PoliciesGetPolicyByIdRequest(TypedDict):
    tenant_id: NotRequired[str]
    policy_id: str


class PoliciesGetPolicyByIdResponse(TypedDict):
    policy: Policy


class PoliciesUpdatePolicyRequestMatchArguments(TypedDict):
    path: str
    op: Literal['eq', 'ne', 'contains']
    value: str | float | bool | None


class PoliciesUpdatePolicyRequestMatchArguments1(TypedDict):
    path: str
    op: Literal['in']
    value: list[str | float | bool | None]


class PoliciesUpdatePolicyRequestMatchArguments2(TypedDict):
    path: str
    op: Literal['gt', 'gte', 'lt', 'lte']
    value: float | str


class PoliciesUpdatePolicyRequestMatchArguments3(TypedDict):
    path: str
    op: Literal['matches']
    value: str


class PoliciesUpdatePolicyRequestMatchNotArguments(TypedDict):
    path: str
    op: Literal['eq', 'ne', 'contains']
    value: str | float | bool | None


class PoliciesUpdatePolicyRequestMatchNotArguments1(TypedDict):
    path: str
    op: Literal['in']
    value: list[str | float | bool | None]


class PoliciesUpdatePolicyRequestMatchNotArguments2(TypedDict):
    path: str
    op: Literal['gt', 'gte', 'lt', 'lte']
    value: float | str


class PoliciesUpdatePolicyRequestMatchNotArguments3(TypedDict):
    path: str
    op: Literal['matches']
    value: str


class PoliciesUpdatePolicyRequestMatchNot(TypedDict):
    tools: NotRequired[list[str]]
    agent_types: NotRequired[list[str]]
    instance_ids: NotRequired[list[str]]
    skills: NotRequired[list[str]]
    actions: NotRequired[list[str]]
    paths: NotRequired[list[str]]
    hosts: NotRequired[list[str]]
    arguments: NotRequired[list[PoliciesUpdatePolicyRequestMatchNotArguments | PoliciesUpdatePolicyRequestMatchNotArguments1 | PoliciesUpdatePolicyRequestMatchNotArguments2 | PoliciesUpdatePolicyRequestMatchNotArguments3]]


PoliciesUpdatePolicyRequestMatch = TypedDict(
    'PoliciesUpdatePolicyRequestMatch',
    {
        'tools': NotRequired[list[str]],
        'agent_types': NotRequired[list[str]],
        'instance_ids': NotRequired[list[str]],
        'skills': NotRequired[list[str]],
        'actions': NotRequired[list[str]],
        'paths': NotRequired[list[str]],
        'hosts': NotRequired[list[str]],
        'arguments': NotRequired[list[PoliciesUpdatePolicyRequestMatchArguments | PoliciesUpdatePolicyRequestMatchArguments1 | PoliciesUpdatePolicyRequestMatchArguments2 | PoliciesUpdatePolicyRequestMatchArguments3]],
        'not': NotRequired[PoliciesUpdatePolicyRequestMatchNot],
    },
)


class PoliciesUpdatePolicyRequestEvaluatorApproval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesUpdatePolicyRequestEvaluator(TypedDict):
    approval: NotRequired[PoliciesUpdatePolicyRequestEvaluatorApproval]
    type: Literal['cel']
    expression: str
    on_error: NotRequired[Literal['deny', 'require_approval']]


class PoliciesUpdatePolicyRequestEvaluator1Approval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesUpdatePolicyRequestEvaluator1(TypedDict):
    approval: NotRequired[PoliciesUpdatePolicyRequestEvaluator1Approval]
    type: Literal['webhook']
    url: str
    secret: NotRequired[str | None]
    timeout_ms: NotRequired[int]
    on_error: NotRequired[Literal['deny', 'require_approval']]
    secret_set: NotRequired[bool]


class PoliciesUpdatePolicyRequestEvaluator2Approval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesUpdatePolicyRequestEvaluator2(TypedDict):
    approval: NotRequired[PoliciesUpdatePolicyRequestEvaluator2Approval]


class PoliciesUpdatePolicyRequest(TypedDict):
    name: NotRequired[str]
    decision: NotRequired[Literal['allow', 'deny', 'require_approval', 'audit']]
    description: NotRequired[str]
    match: NotRequired[PoliciesUpdatePolicyRequestMatch]
    reason: NotRequired[str]
    approvers: NotRequired[list[str]]
    evaluator: NotRequired[PoliciesUpdatePolicyRequestEvaluator | PoliciesUpdatePolicyRequestEvaluator1 | PoliciesUpdatePolicyRequestEvaluator2]
    priority: NotRequired[int]
    enabled: NotRequired[bool]
    end_at: NotRequired[str | None]
    max_calls: NotRequired[int | None]
    tenant_id: NotRequired[str]
    policy_id: str


class PoliciesUpdatePolicyResponse(TypedDict):
    policy: Policy


class PoliciesDeletePolicyRequest(TypedDict):
    tenant_id: NotRequired[str]
    policy_id: str


class PoliciesDeletePolicyResponse(TypedDict):
    ok: Literal[True]
    policy_id: str


class PoliciesTestPolicyRequest(TypedDict):
    tenant_id: NotRequired[str]
    scope: Literal['admission', 'dispatch', 'tool', 'plan', 'session']
    action: str
    tool: NotRequired[str]
    agent_type: NotRequired[str]
    instance_id: NotRequired[str]
    skill_id: NotRequired[str]
    session_id: NotRequired[str]
    user_id: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]


class PoliciesTestPolicyResponseTraceItem(TypedDict):
    policy_id: str
    name: str
    decision: str
    priority: int
    outcome: str
    explanation: str


class PoliciesTestPolicyResponse(TypedDict):
    decision: str
    policy_id: NotRequired[str]
    matched: bool
    trace: list[PoliciesTestPolicyResponseTraceItem]


class PoliciesBacktestRequestPolicyMatchArguments(TypedDict):
    path: str
    op: Literal['eq', 'ne', 'contains']
    value: str | float | bool | None


class PoliciesBacktestRequestPolicyMatchArguments1(TypedDict):
    path: str
    op: Literal['in']
    value: list[str | float | bool | None]


class PoliciesBacktestRequestPolicyMatchArguments2(TypedDict):
    path: str
    op: Literal['gt', 'gte', 'lt', 'lte']
    value: float | str


class PoliciesBacktestRequestPolicyMatchArguments3(TypedDict):
    path: str
    op: Literal['matches']
    value: str


class PoliciesBacktestRequestPolicyMatchNotArguments(TypedDict):
    path: str
    op: Literal['eq', 'ne', 'contains']
    value: str | float | bool | None


class PoliciesBacktestRequestPolicyMatchNotArguments1(TypedDict):
    path: str
    op: Literal['in']
    value: list[str | float | bool | None]


class PoliciesBacktestRequestPolicyMatchNotArguments2(TypedDict):
    path: str
    op: Literal['gt', 'gte', 'lt', 'lte']
    value: float | str


class PoliciesBacktestRequestPolicyMatchNotArguments3(TypedDict):
    path: str
    op: Literal['matches']
    value: str


class PoliciesBacktestRequestPolicyMatchNot(TypedDict):
    tools: NotRequired[list[str]]
    agent_types: NotRequired[list[str]]
    instance_ids: NotRequired[list[str]]
    skills: NotRequired[list[str]]
    actions: NotRequired[list[str]]
    paths: NotRequired[list[str]]
    hosts: NotRequired[list[str]]
    arguments: NotRequired[list[PoliciesBacktestRequestPolicyMatchNotArguments | PoliciesBacktestRequestPolicyMatchNotArguments1 | PoliciesBacktestRequestPolicyMatchNotArguments2 | PoliciesBacktestRequestPolicyMatchNotArguments3]]


PoliciesBacktestRequestPolicyMatch = TypedDict(
    'PoliciesBacktestRequestPolicyMatch',
    {
        'tools': NotRequired[list[str]],
        'agent_types': NotRequired[list[str]],
        'instance_ids': NotRequired[list[str]],
        'skills': NotRequired[list[str]],
        'actions': NotRequired[list[str]],
        'paths': NotRequired[list[str]],
        'hosts': NotRequired[list[str]],
        'arguments': NotRequired[list[PoliciesBacktestRequestPolicyMatchArguments | PoliciesBacktestRequestPolicyMatchArguments1 | PoliciesBacktestRequestPolicyMatchArguments2 | PoliciesBacktestRequestPolicyMatchArguments3]],
        'not': NotRequired[PoliciesBacktestRequestPolicyMatchNot],
    },
)


class PoliciesBacktestRequestPolicyEvaluatorApproval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesBacktestRequestPolicyEvaluator(TypedDict):
    approval: NotRequired[PoliciesBacktestRequestPolicyEvaluatorApproval]
    type: Literal['cel']
    expression: str
    on_error: NotRequired[Literal['deny', 'require_approval']]


class PoliciesBacktestRequestPolicyEvaluator1Approval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesBacktestRequestPolicyEvaluator1(TypedDict):
    approval: NotRequired[PoliciesBacktestRequestPolicyEvaluator1Approval]
    type: Literal['webhook']
    url: str
    secret: NotRequired[str | None]
    timeout_ms: NotRequired[int]
    on_error: NotRequired[Literal['deny', 'require_approval']]
    secret_set: NotRequired[bool]


class PoliciesBacktestRequestPolicyEvaluator2Approval(TypedDict):
    quorum: NotRequired[int]
    timeout_seconds: NotRequired[int]
    reminder_seconds: NotRequired[int]
    escalate_to: NotRequired[list[str]]
    allow_self: NotRequired[bool]
    on_reject: NotRequired[Literal['fail', 'tell_agent']]


class PoliciesBacktestRequestPolicyEvaluator2(TypedDict):
    approval: NotRequired[PoliciesBacktestRequestPolicyEvaluator2Approval]


class PoliciesBacktestRequestPolicy(TypedDict):
    name: NotRequired[str]
    decision: Literal['allow', 'deny', 'require_approval', 'audit']
    description: NotRequired[str]
    match: NotRequired[PoliciesBacktestRequestPolicyMatch]
    reason: NotRequired[str]
    approvers: NotRequired[list[str]]
    evaluator: NotRequired[PoliciesBacktestRequestPolicyEvaluator | PoliciesBacktestRequestPolicyEvaluator1 | PoliciesBacktestRequestPolicyEvaluator2]
    priority: NotRequired[int]
    enabled: NotRequired[bool]
    end_at: NotRequired[str | None]
    max_calls: NotRequired[int | None]
    scope: Literal['admission', 'dispatch', 'tool', 'plan', 'session']


PoliciesBacktestRequest = TypedDict(
    'PoliciesBacktestRequest',
    {
        'tenant_id': NotRequired[str],
        'policy': PoliciesBacktestRequestPolicy,
        'from': NotRequired[str],
        'to': NotRequired[str],
        'limit': NotRequired[int],
    },
)


class PoliciesBacktestResponseByDecision(TypedDict):
    allow: int
    deny: int
    require_approval: int
    audit: int


class PoliciesBacktestResponseSample(TypedDict):
    at: str
    action: str
    decision: str
    message_id: NotRequired[str]
    request_id: NotRequired[str]
    plan_id: NotRequired[str]
    session_id: NotRequired[str]
    tool: NotRequired[str]
    agent_type: NotRequired[str]
    instance_id: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]
    over_max_calls: NotRequired[Literal[True]]


class PoliciesBacktestResponse(TypedDict):
    ok: Literal[True]
    examined: int
    matched: int
    unknown: int
    by_decision: PoliciesBacktestResponseByDecision
    over_max_calls: int
    samples: list[PoliciesBacktestResponseSample]
    sampled: bool


class PoliciesGetGuardsRequest(TypedDict):
    tenant_id: NotRequired[str]


class PoliciesGetGuardsResponse(TypedDict):
    ok: Literal[True]
    guards: list[Guard]


class PoliciesUpdateGuardRequestPathConfig(TypedDict):
    allowed_roots: NotRequired[list[str]]


class PoliciesUpdateGuardRequestPath(TypedDict):
    guard: Literal['path']
    tenant_id: NotRequired[str]
    enabled: NotRequired[bool]
    decision: NotRequired[Literal['allow', 'require_approval', 'deny']]
    config: NotRequired[PoliciesUpdateGuardRequestPathConfig]


class PoliciesUpdateGuardRequestEgressConfig(TypedDict):
    allowed_hosts: NotRequired[list[str]]
    denied_hosts: NotRequired[list[str]]
    stages: NotRequired[list[Literal['message', 'output', 'tool_arguments', 'tool_result']]]


class PoliciesUpdateGuardRequestEgress(TypedDict):
    guard: Literal['egress']
    tenant_id: NotRequired[str]
    enabled: NotRequired[bool]
    decision: NotRequired[Literal['allow', 'require_approval', 'deny']]
    config: NotRequired[PoliciesUpdateGuardRequestEgressConfig]


class PoliciesUpdateGuardRequestSecretsConfig(TypedDict):
    detect: NotRequired[list[Literal['credentials', 'payment_cards', 'bank_accounts', 'national_ids', 'email_addresses', 'phone_numbers']]]
    stages: NotRequired[list[Literal['message', 'output', 'tool_arguments', 'tool_result']]]


class PoliciesUpdateGuardRequestSecrets(TypedDict):
    guard: Literal['secrets']
    tenant_id: NotRequired[str]
    enabled: NotRequired[bool]
    decision: NotRequired[Literal['allow', 'require_approval', 'deny']]
    config: NotRequired[PoliciesUpdateGuardRequestSecretsConfig]


class PoliciesUpdateGuardRequestPromptInjectionConfig(TypedDict):
    stages: NotRequired[list[Literal['message', 'output', 'tool_arguments', 'tool_result']]]


class PoliciesUpdateGuardRequestPromptInjection(TypedDict):
    guard: Literal['prompt_injection']
    tenant_id: NotRequired[str]
    enabled: NotRequired[bool]
    decision: NotRequired[Literal['allow', 'require_approval', 'deny']]
    config: NotRequired[PoliciesUpdateGuardRequestPromptInjectionConfig]


class PoliciesUpdateGuardRequestLimitsConfig(TypedDict):
    max_message_bytes: NotRequired[int]
    max_output_bytes: NotRequired[int]
    max_argument_bytes: NotRequired[int]
    max_result_bytes: NotRequired[int]
    max_depth: NotRequired[int]
    max_hops: NotRequired[int]
    max_repeated_calls: NotRequired[int | None]


class PoliciesUpdateGuardRequestLimits(TypedDict):
    guard: Literal['limits']
    tenant_id: NotRequired[str]
    enabled: NotRequired[bool]
    decision: NotRequired[Literal['allow', 'require_approval', 'deny']]
    config: NotRequired[PoliciesUpdateGuardRequestLimitsConfig]


PoliciesUpdateGuardRequest: TypeAlias = PoliciesUpdateGuardRequestPath | PoliciesUpdateGuardRequestEgress | PoliciesUpdateGuardRequestSecrets | PoliciesUpdateGuardRequestPromptInjection | PoliciesUpdateGuardRequestLimits


class PoliciesUpdateGuardResponse(TypedDict):
    ok: Literal[True]
    guard: Guard


class PoliciesNewAlertRequestCondition(TypedDict):
    event: str
    filters: NotRequired[dict[str, str | float | bool | list[str | float | bool | None] | None]]


class PoliciesNewAlertRequestNotificationsConfig(TypedDict):
    url: str
    secret: NotRequired[str | None]
    headers: NotRequired[dict[str, str] | None]
    max_attempts: NotRequired[Literal[3, 4]]


class PoliciesNewAlertRequestNotifications(TypedDict):
    type: Literal['webhook']
    config: PoliciesNewAlertRequestNotificationsConfig
    enabled: NotRequired[bool]
    channel_id: NotRequired[str]
    secrets_set: NotRequired[list[str]]
    unreadable: NotRequired[bool]
    receiver: NotRequired[Any]


class PoliciesNewAlertRequestNotifications1Config(TypedDict):
    webhook_url: NotRequired[str | None]
    bot_token: NotRequired[str | None]
    channel_id: NotRequired[str]
    signing_secret: NotRequired[str | None]
    max_attempts: NotRequired[Literal[3, 4]]


class PoliciesNewAlertRequestNotifications1(TypedDict):
    type: Literal['slack']
    config: PoliciesNewAlertRequestNotifications1Config
    enabled: NotRequired[bool]
    channel_id: NotRequired[str]
    secrets_set: NotRequired[list[str]]
    unreadable: NotRequired[bool]
    receiver: NotRequired[Any]


class PoliciesNewAlertRequestNotifications2Config(TypedDict):
    recipients: list[str]
    max_attempts: NotRequired[Literal[3, 4]]


class PoliciesNewAlertRequestNotifications2(TypedDict):
    type: Literal['email']
    config: PoliciesNewAlertRequestNotifications2Config
    enabled: NotRequired[bool]
    channel_id: NotRequired[str]
    secrets_set: NotRequired[list[str]]
    unreadable: NotRequired[bool]
    receiver: NotRequired[Any]


class PoliciesNewAlertRequest(TypedDict):
    name: str
    condition: PoliciesNewAlertRequestCondition
    notifications: list[PoliciesNewAlertRequestNotifications | PoliciesNewAlertRequestNotifications1 | PoliciesNewAlertRequestNotifications2]
    severity: NotRequired[Literal['info', 'warning', 'critical']]
    threshold: NotRequired[int]
    window_seconds: NotRequired[int]
    cooldown_seconds: NotRequired[int]
    description: NotRequired[str]
    enabled: NotRequired[bool]
    approvers: NotRequired[list[str]]


PoliciesNewAlertResponse: TypeAlias = AlertRule


class PoliciesGetAlertsRequest(TypedDict):
    page: NotRequired[int]
    page_size: NotRequired[int]


class PoliciesGetAlertsResponse(TypedDict):
    count: int
    page: int
    page_size: int
    total_pages: int
    rules: list[AlertRule]


class PoliciesGetAlertByIdRequest(TypedDict):
    rule_id: str


PoliciesGetAlertByIdResponse: TypeAlias = AlertRule


class PoliciesUpdateAlertRequestCondition(TypedDict):
    event: str
    filters: NotRequired[dict[str, str | float | bool | list[str | float | bool | None] | None]]


class PoliciesUpdateAlertRequestNotificationsConfig(TypedDict):
    url: str
    secret: NotRequired[str | None]
    headers: NotRequired[dict[str, str] | None]
    max_attempts: NotRequired[Literal[3, 4]]


class PoliciesUpdateAlertRequestNotifications(TypedDict):
    type: Literal['webhook']
    config: PoliciesUpdateAlertRequestNotificationsConfig
    enabled: NotRequired[bool]
    channel_id: NotRequired[str]
    secrets_set: NotRequired[list[str]]
    unreadable: NotRequired[bool]
    receiver: NotRequired[Any]


class PoliciesUpdateAlertRequestNotifications1Config(TypedDict):
    webhook_url: NotRequired[str | None]
    bot_token: NotRequired[str | None]
    channel_id: NotRequired[str]
    signing_secret: NotRequired[str | None]
    max_attempts: NotRequired[Literal[3, 4]]


class PoliciesUpdateAlertRequestNotifications1(TypedDict):
    type: Literal['slack']
    config: PoliciesUpdateAlertRequestNotifications1Config
    enabled: NotRequired[bool]
    channel_id: NotRequired[str]
    secrets_set: NotRequired[list[str]]
    unreadable: NotRequired[bool]
    receiver: NotRequired[Any]


class PoliciesUpdateAlertRequestNotifications2Config(TypedDict):
    recipients: list[str]
    max_attempts: NotRequired[Literal[3, 4]]


class PoliciesUpdateAlertRequestNotifications2(TypedDict):
    type: Literal['email']
    config: PoliciesUpdateAlertRequestNotifications2Config
    enabled: NotRequired[bool]
    channel_id: NotRequired[str]
    secrets_set: NotRequired[list[str]]
    unreadable: NotRequired[bool]
    receiver: NotRequired[Any]


class PoliciesUpdateAlertRequest(TypedDict):
    rule_id: str
    name: NotRequired[str]
    condition: NotRequired[PoliciesUpdateAlertRequestCondition]
    notifications: NotRequired[list[PoliciesUpdateAlertRequestNotifications | PoliciesUpdateAlertRequestNotifications1 | PoliciesUpdateAlertRequestNotifications2]]
    severity: NotRequired[Literal['info', 'warning', 'critical']]
    threshold: NotRequired[int]
    window_seconds: NotRequired[int]
    cooldown_seconds: NotRequired[int]
    description: NotRequired[str]
    enabled: NotRequired[bool]
    approvers: NotRequired[list[str]]


PoliciesUpdateAlertResponse: TypeAlias = AlertRule


class PoliciesDeleteAlertRequest(TypedDict):
    rule_id: str


class PoliciesDeleteAlertResponse(TypedDict):
    ok: Literal[True]


class PoliciesTestAlertRequest(TypedDict):
    rule_id: str


class PoliciesTestAlertResponseResult(TypedDict):
    type: str
    ok: bool
    message: str


class PoliciesTestAlertResponse(TypedDict):
    results: list[PoliciesTestAlertResponseResult]


class WebhooksGetDeliveriesRequest(TypedDict):
    delivery_id: NotRequired[str]
    rule_id: NotRequired[str]
    task_id: NotRequired[str]
    event_type: NotRequired[str]
    success: NotRequired[bool]
    status: NotRequired[Literal['pending', 'delivered', 'failed', 'dropped']]
    since: NotRequired[str]
    page: NotRequired[int]
    page_size: NotRequired[int]


class WebhooksGetDeliveriesResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    deliveries: list[Delivery]


class WebhooksRedeliverRequest(TypedDict):
    delivery_id: str


class WebhooksRedeliverResponse(TypedDict):
    ok: Literal[True]
    delivery_id: str
    status: str


class SlackInteractionsRequest(TypedDict):
    payload: str


class SlackInteractionsResponse(TypedDict):
    ok: Literal[True]


TelemetryGetEventsRequest = TypedDict(
    'TelemetryGetEventsRequest',
    {
        'page': NotRequired[int],
        'page_size': NotRequired[int],
        'session_id': NotRequired[str],
        'message_id': NotRequired[str],
        'instance_id': NotRequired[str],
        'category': NotRequired[str],
        'type': NotRequired[str],
        'source': NotRequired[str],
        'from': NotRequired[str],
        'to': NotRequired[str],
    },
)


class TelemetryGetEventsResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    events: list[EventRecord]


class TelemetryStreamEventsRequest(TypedDict):
    session_id: NotRequired[str]
    message_id: NotRequired[str]
    instance_id: NotRequired[str]
    category: NotRequired[str]
    type: NotRequired[str]
    source: NotRequired[str]
    last_event_id: NotRequired[str]


TelemetryStreamEventsItem: TypeAlias = EventRecord


class TelemetryStreamEventsByQueryRequest(TypedDict):
    session_id: NotRequired[str]
    message_id: NotRequired[str]
    instance_id: NotRequired[str]
    category: NotRequired[str]
    type: NotRequired[str]
    source: NotRequired[str]
    last_event_id: NotRequired[str]


TelemetryStreamEventsByQueryItem: TypeAlias = EventRecord


class TelemetryGetTracesRequest(TypedDict):
    page: NotRequired[int]
    page_size: NotRequired[int]
    trace_id: NotRequired[str]
    session_id: NotRequired[str]
    status: NotRequired[Literal['running', 'ok', 'error', 'canceled']]
    has_plan: NotRequired[bool]


class TelemetryGetTracesResponseForm1TraceSpan(TypedDict):
    span_id: str
    parent_span_id: str | None
    name: str
    kind: str
    start: str
    end: str | None
    status: str
    attributes: dict[str, str | float | bool]


class TelemetryGetTracesResponseForm1Trace(TypedDict):
    trace_id: str
    session_id: str
    tenant_id: str
    root_agent: str | None
    status: str
    started_at: str
    ended_at: str | None
    duration_ms: int | None
    span_count: int
    truncated: NotRequired[Literal[True]]
    spans: list[TelemetryGetTracesResponseForm1TraceSpan]


@final
class TelemetryGetTracesResponseForm1(TypedDict):
    ok: Literal[True]
    trace: TelemetryGetTracesResponseForm1Trace


class TelemetryGetTracesResponseForm2Trace(TypedDict):
    trace_id: str
    session_id: str
    tenant_id: str
    root_agent: str | None
    status: str
    started_at: str
    ended_at: str | None
    duration_ms: int | None
    span_count: int
    truncated: NotRequired[Literal[True]]


@final
class TelemetryGetTracesResponseForm2(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    traces: list[TelemetryGetTracesResponseForm2Trace]


TelemetryGetTracesResponse: TypeAlias = TelemetryGetTracesResponseForm1 | TelemetryGetTracesResponseForm2


class TelemetryGetUsageRequest(TypedDict):
    summary: NotRequired[bool]
    range: NotRequired[Literal['24h', '7d', '30d']]
    group_by: NotRequired[Literal['agent_type', 'model', 'instance_id', 'day', 'session', 'user', 'credential']]
    sort: NotRequired[Literal['tokens', 'messages', 'dispatches', 'tool_calls', 'input_tokens', 'output_tokens', 'total_tokens', 'duration_ms', 'cost_usd', 'key']]
    order: NotRequired[Literal['asc', 'desc']]
    page: NotRequired[int]
    page_size: NotRequired[int]


class TelemetryGetUsageResponseTotals(TypedDict):
    messages: int
    dispatches: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    duration_ms: int
    cost_usd: float


class TelemetryGetUsageResponse(TypedDict):
    ok: Literal[True]
    range: str
    totals: TelemetryGetUsageResponseTotals
    rows: list[UsageRow]
    count: int
    page: int
    page_size: int
    total_pages: int


class TenantsCreateRequestLimits(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsCreateRequestCredential(TypedDict):
    name: str
    scopes: list[Literal['read', 'admin', 'full']]
    agent_types: NotRequired[list[Literal['*'] | str]]
    expires_at: NotRequired[str]


class TenantsCreateRequest(TypedDict):
    name: str
    default_agent_type: NotRequired[str | None]
    limits: NotRequired[TenantsCreateRequestLimits]
    credential: NotRequired[TenantsCreateRequestCredential]


class TenantsCreateResponseTenantLimits(TypedDict):
    messages_per_day: int | None
    tokens_per_day: int | None
    cost_usd_per_month: float | None


class TenantsCreateResponseTenant(TypedDict):
    tenant_id: str
    name: str
    default_agent_type: str | None
    limits: TenantsCreateResponseTenantLimits
    created_at: str
    deleted_at: str | None


class TenantsCreateResponse(TypedDict):
    ok: Literal[True]
    tenant: TenantsCreateResponseTenant
    credential: NotRequired[Credential]
    client_secret: NotRequired[str]


class TenantsGetRequest(TypedDict):
    page: NotRequired[int]
    page_size: NotRequired[int]


class TenantsGetResponseTenantLimits(TypedDict):
    messages_per_day: int | None
    tokens_per_day: int | None
    cost_usd_per_month: float | None


class TenantsGetResponseTenant(TypedDict):
    tenant_id: str
    name: str
    default_agent_type: str | None
    limits: TenantsGetResponseTenantLimits
    created_at: str
    deleted_at: str | None


class TenantsGetResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    tenants: list[TenantsGetResponseTenant]


class TenantsGetByIdRequest(TypedDict):
    tenant_id: str


class TenantsGetByIdResponseTenantLimits(TypedDict):
    messages_per_day: int | None
    tokens_per_day: int | None
    cost_usd_per_month: float | None


class TenantsGetByIdResponseTenant(TypedDict):
    tenant_id: str
    name: str
    default_agent_type: str | None
    limits: TenantsGetByIdResponseTenantLimits
    created_at: str
    deleted_at: str | None


class TenantsGetByIdResponse(TypedDict):
    ok: Literal[True]
    tenant: TenantsGetByIdResponseTenant


class TenantsUpdateRequestLimits(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsUpdateRequest(TypedDict):
    name: NotRequired[str]
    default_agent_type: NotRequired[str | None]
    limits: NotRequired[TenantsUpdateRequestLimits]
    tenant_id: str


class TenantsUpdateResponseTenantLimits(TypedDict):
    messages_per_day: int | None
    tokens_per_day: int | None
    cost_usd_per_month: float | None


class TenantsUpdateResponseTenant(TypedDict):
    tenant_id: str
    name: str
    default_agent_type: str | None
    limits: TenantsUpdateResponseTenantLimits
    created_at: str
    deleted_at: str | None


class TenantsUpdateResponse(TypedDict):
    ok: Literal[True]
    tenant: TenantsUpdateResponseTenant


class TenantsDeleteRequest(TypedDict):
    tenant_id: str


class TenantsDeleteResponse(TypedDict):
    ok: Literal[True]
    tenant_id: str


class TenantsGetLimitsRequest(TypedDict):
    pass


class TenantsGetLimitsResponseLimitsPerUser(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsGetLimitsResponseLimitsPerCredential(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsGetLimitsResponseLimitsPerAgentType(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsGetLimitsResponseLimits(TypedDict):
    messages_per_day: int | None
    tokens_per_day: int | None
    cost_usd_per_month: float | None
    per_user: NotRequired[TenantsGetLimitsResponseLimitsPerUser | None]
    per_credential: NotRequired[TenantsGetLimitsResponseLimitsPerCredential | None]
    per_agent_type: NotRequired[TenantsGetLimitsResponseLimitsPerAgentType | None]


class TenantsGetLimitsResponseUsed(TypedDict):
    messages: int
    tokens: int
    cost_usd: float


class TenantsGetLimitsResponse(TypedDict):
    ok: Literal[True]
    limits: TenantsGetLimitsResponseLimits
    used: TenantsGetLimitsResponseUsed
    day_ends_at: str
    month_ends_at: str


class TenantsSetLimitsRequestPerUser(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsSetLimitsRequestPerCredential(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsSetLimitsRequestPerAgentType(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsSetLimitsRequest(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]
    per_user: NotRequired[TenantsSetLimitsRequestPerUser | None]
    per_credential: NotRequired[TenantsSetLimitsRequestPerCredential | None]
    per_agent_type: NotRequired[TenantsSetLimitsRequestPerAgentType | None]


class TenantsSetLimitsResponseLimitsPerUser(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsSetLimitsResponseLimitsPerCredential(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsSetLimitsResponseLimitsPerAgentType(TypedDict):
    messages_per_day: NotRequired[int | None]
    tokens_per_day: NotRequired[int | None]
    cost_usd_per_month: NotRequired[float | None]


class TenantsSetLimitsResponseLimits(TypedDict):
    messages_per_day: int | None
    tokens_per_day: int | None
    cost_usd_per_month: float | None
    per_user: NotRequired[TenantsSetLimitsResponseLimitsPerUser | None]
    per_credential: NotRequired[TenantsSetLimitsResponseLimitsPerCredential | None]
    per_agent_type: NotRequired[TenantsSetLimitsResponseLimitsPerAgentType | None]


class TenantsSetLimitsResponseUsed(TypedDict):
    messages: int
    tokens: int
    cost_usd: float


class TenantsSetLimitsResponse(TypedDict):
    ok: Literal[True]
    limits: TenantsSetLimitsResponseLimits
    used: TenantsSetLimitsResponseUsed
    day_ends_at: str
    month_ends_at: str


class TenantsGetPricesRequest(TypedDict):
    pass


class TenantsGetPricesResponse(TypedDict):
    ok: Literal[True]
    prices: list[ModelPrice]


class TenantsSetPricesRequest(TypedDict):
    model: str
    input_per_million: float | None
    output_per_million: float | None


class TenantsSetPricesResponse(TypedDict):
    ok: Literal[True]
    prices: list[ModelPrice]


AuditGetRequest = TypedDict(
    'AuditGetRequest',
    {
        'audit_id': NotRequired[str],
        'principal': NotRequired[str],
        'action': NotRequired[str],
        'target': NotRequired[str],
        'from': NotRequired[str],
        'to': NotRequired[str],
        'sort': NotRequired[Literal['newest', 'oldest']],
        'page_size': NotRequired[int],
        'cursor': NotRequired[str],
        'format': NotRequired[Literal['json', 'jsonl']],
    },
)


class AuditGetResponseEntryPrincipal(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class AuditGetResponseEntryTarget(TypedDict):
    type: str
    id: str
    name: NotRequired[str]


class AuditGetResponseEntry(TypedDict):
    audit_id: str
    at: str
    principal: AuditGetResponseEntryPrincipal
    action: str
    target: AuditGetResponseEntryTarget
    ip: NotRequired[str]
    before: NotRequired[dict[str, Any] | None]
    after: NotRequired[dict[str, Any] | None]
    cursor: NotRequired[str]


class AuditGetResponse(TypedDict):
    ok: Literal[True]
    entries: list[AuditGetResponseEntry]
    next_cursor: NotRequired[str]


class KnowledgeNewRequestConfig(TypedDict):
    top_k: NotRequired[int]
    min_score: NotRequired[float]
    mode: NotRequired[Literal['hybrid', 'semantic', 'lexical']]
    chunk_tokens: NotRequired[int]
    chunk_overlap: NotRequired[int]


class KnowledgeNewRequestDocument(TypedDict):
    source_id: NotRequired[str]
    content: NotRequired[str]
    content_base64: NotRequired[str]
    url: NotRequired[str]
    title: NotRequired[str]
    filename: NotRequired[str]
    content_type: NotRequired[str]
    source_type: NotRequired[str]
    tags: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]


class KnowledgeNewRequest(TypedDict):
    namespace: str
    display_name: NotRequired[str]
    description: NotRequired[str]
    visibility: NotRequired[Literal['private', 'tenant']]
    config: NotRequired[KnowledgeNewRequestConfig]
    documents: NotRequired[list[KnowledgeNewRequestDocument]]
    idempotency_key: NotRequired[str]
    wait: NotRequired[bool]


class KnowledgeNewResponse(TypedDict):
    ok: Literal[True]
    knowledge_base: KnowledgeBase
    job_id: NotRequired[str]
    status: NotRequired[str]


class KnowledgeGetRequest(TypedDict):
    page: NotRequired[int]
    page_size: NotRequired[int]


class KnowledgeGetResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    knowledge_bases: list[KnowledgeBase]


class KnowledgeGetByIdRequest(TypedDict):
    namespace: str


class KnowledgeGetByIdResponse(TypedDict):
    ok: Literal[True]
    knowledge_base: KnowledgeBase


class KnowledgeUpdateRequestConfig(TypedDict):
    top_k: NotRequired[int]
    min_score: NotRequired[float]
    mode: NotRequired[Literal['hybrid', 'semantic', 'lexical']]
    chunk_tokens: NotRequired[int]
    chunk_overlap: NotRequired[int]


class KnowledgeUpdateRequest(TypedDict):
    namespace: str
    display_name: NotRequired[str]
    description: NotRequired[str]
    visibility: NotRequired[Literal['private', 'tenant']]
    config: NotRequired[KnowledgeUpdateRequestConfig]


class KnowledgeUpdateResponse(TypedDict):
    ok: Literal[True]
    knowledge_base: KnowledgeBase
    refresh_required: NotRequired[Literal[True]]


class KnowledgeDeleteRequest(TypedDict):
    namespace: str


class KnowledgeDeleteResponse(TypedDict):
    ok: Literal[True]


class KnowledgeIngestRequestDocument(TypedDict):
    source_id: NotRequired[str]
    content: NotRequired[str]
    content_base64: NotRequired[str]
    url: NotRequired[str]
    title: NotRequired[str]
    filename: NotRequired[str]
    content_type: NotRequired[str]
    source_type: NotRequired[str]
    tags: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]


class KnowledgeIngestRequest(TypedDict):
    namespace: str
    source_id: NotRequired[str]
    content: NotRequired[str]
    content_base64: NotRequired[str]
    url: NotRequired[str]
    title: NotRequired[str]
    filename: NotRequired[str]
    content_type: NotRequired[str]
    source_type: NotRequired[str]
    tags: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]
    documents: NotRequired[list[KnowledgeIngestRequestDocument]]
    idempotency_key: NotRequired[str]
    wait: NotRequired[bool]


class KnowledgeIngestResponseSourceError(TypedDict):
    code: str
    message: str


class KnowledgeIngestResponseSource(TypedDict):
    source_id: str
    status: str
    chunk_count: int
    tags: list[str]
    created_at: str
    content_hash: str | None
    result: NotRequired[str]
    error: NotRequired[KnowledgeIngestResponseSourceError]


KnowledgeIngestResponse = TypedDict(
    'KnowledgeIngestResponse',
    {
        'ok': Literal[True],
        'job_id': str,
        'status': str,
        'async': bool,
        'sources': list[KnowledgeIngestResponseSource],
        'chunks_created': NotRequired[int],
        'source_id': NotRequired[str],
    },
)


class KnowledgeQueryRequestFilters(TypedDict):
    tags_any: NotRequired[list[str]]
    tags_all: NotRequired[list[str]]
    source_ids: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]


class KnowledgeQueryRequest(TypedDict):
    namespace: NotRequired[str]
    namespaces: NotRequired[list[str]]
    query: str
    top_k: NotRequired[int]
    min_score: NotRequired[float]
    mode: NotRequired[Literal['hybrid', 'semantic', 'lexical']]
    filters: NotRequired[KnowledgeQueryRequestFilters]


class KnowledgeQueryResponse(TypedDict):
    ok: Literal[True]
    results: list[SearchResult]
    total_candidates: int
    mode_used: str
    results_omitted: NotRequired[int]


class KnowledgeRefreshRequest(TypedDict):
    namespace: str
    source_ids: NotRequired[list[str]]
    force: NotRequired[bool]


class KnowledgeRefreshResponse(TypedDict):
    ok: Literal[True]
    job_id: str
    status: str


class KnowledgeGetStatsRequest(TypedDict):
    namespace: str


class KnowledgeGetStatsResponse(TypedDict):
    ok: Literal[True]
    stats: KnowledgeStats


class KnowledgeGetSourcesRequest(TypedDict):
    namespace: str
    page: NotRequired[int]
    page_size: NotRequired[int]


class KnowledgeGetSourcesResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    sources: list[KnowledgeSource]


class KnowledgeDeleteSourceRequest(TypedDict):
    namespace: str
    source_id: str


class KnowledgeDeleteSourceResponse(TypedDict):
    ok: Literal[True]


class KnowledgeGetJobsRequest(TypedDict):
    namespace: str
    page: NotRequired[int]
    page_size: NotRequired[int]


class KnowledgeGetJobsResponseJobContext(TypedDict):
    namespace: str
    operation: str
    source_id: NotRequired[str]


class KnowledgeGetJobsResponseJobProgress(TypedDict):
    phase: str
    sources_total: int
    sources_done: int
    sources_failed: int
    chunks_done: int
    percent: int


class KnowledgeGetJobsResponseJobResult(TypedDict):
    created: int
    updated: int
    unchanged: int
    failed: int
    chunks_created: int


class KnowledgeGetJobsResponseJobError(TypedDict):
    code: str
    message: str


class KnowledgeGetJobsResponseJob(TypedDict):
    job_id: str
    status: str
    context: KnowledgeGetJobsResponseJobContext
    progress: KnowledgeGetJobsResponseJobProgress
    result: NotRequired[KnowledgeGetJobsResponseJobResult]
    error: NotRequired[KnowledgeGetJobsResponseJobError]
    created_at: str
    updated_at: str


class KnowledgeGetJobsResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    jobs: list[KnowledgeGetJobsResponseJob]


class KnowledgeGetStatusRequest(TypedDict):
    job_id: str


class KnowledgeGetStatusResponseContext(TypedDict):
    namespace: str
    operation: str
    source_id: NotRequired[str]


class KnowledgeGetStatusResponseProgress(TypedDict):
    phase: str
    sources_total: int
    sources_done: int
    sources_failed: int
    chunks_done: int
    percent: int


class KnowledgeGetStatusResponseResult(TypedDict):
    created: int
    updated: int
    unchanged: int
    failed: int
    chunks_created: int


class KnowledgeGetStatusResponseError(TypedDict):
    code: str
    message: str


class KnowledgeGetStatusResponseSourceError(TypedDict):
    code: str
    message: str


class KnowledgeGetStatusResponseSource(TypedDict):
    source_id: str
    status: str
    chunk_count: int
    tags: list[str]
    created_at: str
    content_hash: str | None
    result: NotRequired[str]
    error: NotRequired[KnowledgeGetStatusResponseSourceError]


class KnowledgeGetStatusResponse(TypedDict):
    ok: Literal[True]
    job_id: str
    status: str
    context: KnowledgeGetStatusResponseContext
    progress: KnowledgeGetStatusResponseProgress
    result: NotRequired[KnowledgeGetStatusResponseResult]
    error: NotRequired[KnowledgeGetStatusResponseError]
    created_at: str
    updated_at: str
    sources: list[KnowledgeGetStatusResponseSource]


class PlatformHealthRequest(TypedDict):
    ready: NotRequired[Literal['full']]


class PlatformHealthResponseChecks(TypedDict):
    database: str
    temporal: str
    mesh: str
    redis: NotRequired[str]


class PlatformHealthResponse(TypedDict):
    status: str
    version: str
    checks: PlatformHealthResponseChecks


class PlatformAgentCardResponse030SupportedInterface(TypedDict):
    url: str
    protocolBinding: Literal['JSONRPC']
    protocolVersion: str


class PlatformAgentCardResponse030Skill(TypedDict):
    id: str
    name: str
    description: str
    tags: list[str]
    examples: NotRequired[list[str]]
    inputModes: NotRequired[list[str]]
    outputModes: NotRequired[list[str]]


class PlatformAgentCardResponse030Provider(TypedDict):
    organization: str
    url: str


class PlatformAgentCardResponse030AdditionalInterface(TypedDict):
    url: str
    transport: Literal['JSONRPC']


class PlatformAgentCardResponse030Capabilities(TypedDict):
    streaming: bool
    pushNotifications: bool
    stateTransitionHistory: bool


class PlatformAgentCardResponse030SecuritySchemes(TypedDict):
    type: Literal['http']
    scheme: str
    bearerFormat: str
    description: str


@final
class PlatformAgentCardResponse030(TypedDict):
    protocolVersion: Literal['0.3.0']
    name: str
    description: str
    version: str
    supportedInterfaces: list[PlatformAgentCardResponse030SupportedInterface]
    defaultInputModes: list[str]
    defaultOutputModes: list[str]
    skills: list[PlatformAgentCardResponse030Skill]
    provider: NotRequired[PlatformAgentCardResponse030Provider]
    documentationUrl: NotRequired[str]
    iconUrl: NotRequired[str]
    url: str
    preferredTransport: Literal['JSONRPC']
    additionalInterfaces: list[PlatformAgentCardResponse030AdditionalInterface]
    capabilities: PlatformAgentCardResponse030Capabilities
    securitySchemes: dict[str, PlatformAgentCardResponse030SecuritySchemes]
    security: list[dict[str, list[str]]]
    supportsAuthenticatedExtendedCard: bool


class PlatformAgentCardResponseForm2SupportedInterface(TypedDict):
    url: str
    protocolBinding: Literal['JSONRPC']
    protocolVersion: str


class PlatformAgentCardResponseForm2Skill(TypedDict):
    id: str
    name: str
    description: str
    tags: list[str]
    examples: NotRequired[list[str]]
    inputModes: NotRequired[list[str]]
    outputModes: NotRequired[list[str]]


class PlatformAgentCardResponseForm2Provider(TypedDict):
    organization: str
    url: str


class PlatformAgentCardResponseForm2Capabilities(TypedDict):
    streaming: bool
    pushNotifications: bool
    extendedAgentCard: bool


class PlatformAgentCardResponseForm2SecuritySchemesHttpAuthSecurityScheme(TypedDict):
    scheme: str
    bearerFormat: str
    description: str


class PlatformAgentCardResponseForm2SecuritySchemes(TypedDict):
    httpAuthSecurityScheme: PlatformAgentCardResponseForm2SecuritySchemesHttpAuthSecurityScheme


class PlatformAgentCardResponseForm2SecurityRequirementSchemes(TypedDict):
    list: list[str]


class PlatformAgentCardResponseForm2SecurityRequirement(TypedDict):
    schemes: dict[str, PlatformAgentCardResponseForm2SecurityRequirementSchemes]


@final
class PlatformAgentCardResponseForm2(TypedDict):
    name: str
    description: str
    version: str
    supportedInterfaces: list[PlatformAgentCardResponseForm2SupportedInterface]
    defaultInputModes: list[str]
    defaultOutputModes: list[str]
    skills: list[PlatformAgentCardResponseForm2Skill]
    provider: NotRequired[PlatformAgentCardResponseForm2Provider]
    documentationUrl: NotRequired[str]
    iconUrl: NotRequired[str]
    capabilities: PlatformAgentCardResponseForm2Capabilities
    securitySchemes: dict[str, PlatformAgentCardResponseForm2SecuritySchemes]
    securityRequirements: list[PlatformAgentCardResponseForm2SecurityRequirement]


PlatformAgentCardResponse: TypeAlias = PlatformAgentCardResponse030 | PlatformAgentCardResponseForm2


class PlatformAgentTypeCardResponse030SupportedInterface(TypedDict):
    url: str
    protocolBinding: Literal['JSONRPC']
    protocolVersion: str


class PlatformAgentTypeCardResponse030Skill(TypedDict):
    id: str
    name: str
    description: str
    tags: list[str]
    examples: NotRequired[list[str]]
    inputModes: NotRequired[list[str]]
    outputModes: NotRequired[list[str]]


class PlatformAgentTypeCardResponse030Provider(TypedDict):
    organization: str
    url: str


class PlatformAgentTypeCardResponse030AdditionalInterface(TypedDict):
    url: str
    transport: Literal['JSONRPC']


class PlatformAgentTypeCardResponse030Capabilities(TypedDict):
    streaming: bool
    pushNotifications: bool
    stateTransitionHistory: bool


class PlatformAgentTypeCardResponse030SecuritySchemes(TypedDict):
    type: Literal['http']
    scheme: str
    bearerFormat: str
    description: str


@final
class PlatformAgentTypeCardResponse030(TypedDict):
    protocolVersion: Literal['0.3.0']
    name: str
    description: str
    version: str
    supportedInterfaces: list[PlatformAgentTypeCardResponse030SupportedInterface]
    defaultInputModes: list[str]
    defaultOutputModes: list[str]
    skills: list[PlatformAgentTypeCardResponse030Skill]
    provider: NotRequired[PlatformAgentTypeCardResponse030Provider]
    documentationUrl: NotRequired[str]
    iconUrl: NotRequired[str]
    url: str
    preferredTransport: Literal['JSONRPC']
    additionalInterfaces: list[PlatformAgentTypeCardResponse030AdditionalInterface]
    capabilities: PlatformAgentTypeCardResponse030Capabilities
    securitySchemes: dict[str, PlatformAgentTypeCardResponse030SecuritySchemes]
    security: list[dict[str, list[str]]]
    supportsAuthenticatedExtendedCard: bool


class PlatformAgentTypeCardResponseForm2SupportedInterface(TypedDict):
    url: str
    protocolBinding: Literal['JSONRPC']
    protocolVersion: str


class PlatformAgentTypeCardResponseForm2Skill(TypedDict):
    id: str
    name: str
    description: str
    tags: list[str]
    examples: NotRequired[list[str]]
    inputModes: NotRequired[list[str]]
    outputModes: NotRequired[list[str]]


class PlatformAgentTypeCardResponseForm2Provider(TypedDict):
    organization: str
    url: str


class PlatformAgentTypeCardResponseForm2Capabilities(TypedDict):
    streaming: bool
    pushNotifications: bool
    extendedAgentCard: bool


class PlatformAgentTypeCardResponseForm2SecuritySchemesHttpAuthSecurityScheme(TypedDict):
    scheme: str
    bearerFormat: str
    description: str


class PlatformAgentTypeCardResponseForm2SecuritySchemes(TypedDict):
    httpAuthSecurityScheme: PlatformAgentTypeCardResponseForm2SecuritySchemesHttpAuthSecurityScheme


class PlatformAgentTypeCardResponseForm2SecurityRequirementSchemes(TypedDict):
    list: list[str]


class PlatformAgentTypeCardResponseForm2SecurityRequirement(TypedDict):
    schemes: dict[str, PlatformAgentTypeCardResponseForm2SecurityRequirementSchemes]


@final
class PlatformAgentTypeCardResponseForm2(TypedDict):
    name: str
    description: str
    version: str
    supportedInterfaces: list[PlatformAgentTypeCardResponseForm2SupportedInterface]
    defaultInputModes: list[str]
    defaultOutputModes: list[str]
    skills: list[PlatformAgentTypeCardResponseForm2Skill]
    provider: NotRequired[PlatformAgentTypeCardResponseForm2Provider]
    documentationUrl: NotRequired[str]
    iconUrl: NotRequired[str]
    capabilities: PlatformAgentTypeCardResponseForm2Capabilities
    securitySchemes: dict[str, PlatformAgentTypeCardResponseForm2SecuritySchemes]
    securityRequirements: list[PlatformAgentTypeCardResponseForm2SecurityRequirement]


PlatformAgentTypeCardResponse: TypeAlias = PlatformAgentTypeCardResponse030 | PlatformAgentTypeCardResponseForm2


class PlatformGetHealthRequest(TypedDict):
    pass


class PlatformGetHealthResponseChecks(TypedDict):
    database: str
    temporal: str
    mesh: str
    redis: NotRequired[str]


class PlatformGetHealthResponseNode(TypedDict):
    mesh_id: str
    started_at: str
    renewed_at: str
    draining: bool
    agents: int


class PlatformGetHealthResponse(TypedDict):
    ok: Literal[True]
    status: str
    version: str
    checks: PlatformGetHealthResponseChecks
    nodes: list[PlatformGetHealthResponseNode]


PlatformOpenapiResponse: TypeAlias = dict[str, Any]


class MessageRecord(TypedDict):
    message_id: str
    session_id: str
    tenant_id: str
    role: str
    state: str
    created_at: str
    updated_at: str
    started_at: NotRequired[str]
    completed_at: NotRequired[str]
    duration_ms: NotRequired[int]
    user_input: str
    assistant_output: str
    preview: str
    parts: list[Part]
    artifacts: list[Artifact]
    attachments: list[Part]
    instance_id: str | None
    agent_type: str | None
    root_agent: str | None
    user_id: NotRequired[str]
    sent_by: MessageRecordSentBy
    client_message_id: str
    trace_id: str
    retry_of: NotRequired[str]
    usage: NotRequired[MessageRecordUsage]
    error: NotRequired[MessageRecordError]
    error_message: NotRequired[str]
    input_request: NotRequired[InputRequest]
    waits_for: NotRequired[MessageRecordWaitsFor]
    task_data: Task
    truncated: NotRequired[Literal[True]]


class MessagesGetResponse(TypedDict):
    ok: Literal[True]
    count: int
    count_estimated: NotRequired[Literal[True]]
    page: int
    page_size: int
    total_pages: int
    messages: list[MessageRecord]
    next_cursor: NotRequired[str]


class MessagesGetByIdResponse(TypedDict):
    ok: Literal[True]
    message: MessageRecord


class MessagesPendingResponse(TypedDict):
    ok: Literal[True]
    messages: list[MessageRecord]
    total: int
