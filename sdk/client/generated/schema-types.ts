// Generated from contracts/ by `npm run clients`.
import type { Task } from '../../../contracts/a2a/a2a.js';
import type { Artifact, Part } from '../../../contracts/a2a/parts.js';
import type { Open } from '../api/open.js';

export type ErrorBody = {
    error: string;
    code: string;
    requestId: string;
    /** Format: date-time */
    timestamp: string;
};

export type Credential = {
    credentialId: string;
    clientId: string;
    tenantId: string;
    name: string;
    scopes: Open<"read" | "admin" | "full">[];
    agentTypes: string[];
    /** Format: date-time */
    createdAt: string;
    expiresAt: string | null;
    revokedAt: string | null;
    lastUsedAt: string | null;
};

export type SessionSummary = {
    sessionId: string;
    tenantId: string;
    userId: string | null;
    sentBy: {
        /** @enum {string} */
        type: Open<"credential" | "agent" | "person" | "callback" | "page" | "slack" | "system" | "schedule" | "operator" | "temporal">;
        id: string;
        name?: string;
    };
    /** @enum {string} */
    status: Open<"active" | "paused" | "completed" | "expired">;
    totalTurns: number;
    totalTokens: number;
    /** Format: date-time */
    createdAt: string;
    endedAt: string | null;
};

export type SessionDetails = {
    sessionId: string;
    tenantId: string;
    userId: string | null;
    sentBy: {
        /** @enum {string} */
        type: Open<"credential" | "agent" | "person" | "callback" | "page" | "slack" | "system" | "schedule" | "operator" | "temporal">;
        id: string;
        name?: string;
    };
    /** @enum {string} */
    status: Open<"active" | "paused" | "completed" | "expired">;
    totalTurns: number;
    totalTokens: number;
    /** Format: date-time */
    createdAt: string;
    endedAt: string | null;
    metadata: {
        [key: string]: unknown;
    };
    ordered: boolean;
    agents: {
        agentType: string;
        instanceId: string;
        /** Format: date-time */
        joinedAt: string;
        joinReason: string;
    }[];
};

export type MessageRecord = {
    messageId: string;
    sessionId: string;
    tenantId: string;
    /** @enum {string} */
    role: Open<"user" | "agent">;
    /** @enum {string} */
    state: Open<"submitted" | "working" | "input-required" | "completed" | "failed" | "canceled">;
    /** Format: date-time */
    createdAt: string;
    /** Format: date-time */
    updatedAt: string;
    /** Format: date-time */
    startedAt?: string;
    /** Format: date-time */
    completedAt?: string;
    durationMs?: number;
    userInput: string;
    assistantOutput: string;
    preview: string;
    parts: Part[];
    artifacts: Artifact[];
    attachments: Part[];
    instanceId: string | null;
    agentType: string | null;
    rootAgent: string | null;
    userId?: string;
    sentBy: {
        /** @enum {string} */
        type: Open<"credential" | "agent" | "person" | "callback" | "page" | "slack" | "system" | "schedule" | "operator" | "temporal">;
        id: string;
        name?: string;
    };
    clientMessageId: string;
    traceId: string;
    retryOf?: string;
    usage?: {
        inputTokens: number;
        outputTokens: number;
        model?: string;
        costUsd?: number;
        byModel?: {
            inputTokens: number;
            outputTokens: number;
            model?: string;
            costUsd?: number;
        }[];
    };
    error?: {
        code: string;
        message: string;
    };
    errorMessage?: string;
    inputRequest?: InputRequest;
    waitsFor?: {
        /** @enum {string} */
        kind: Open<"agent" | "room" | "turn" | "evaluator" | "quota" | "person">;
        target?: {
            agentType?: string;
            instanceId?: string;
            skillId?: string;
        };
        /** Format: date-time */
        since: string;
        ahead?: number;
        online?: boolean;
    };
    taskData: Task;
    /** @constant */
    truncated?: true;
};

export type InputRequest = {
    requestId: string;
    /** @enum {string} */
    kind: Open<"approval" | "form" | "confirmation">;
    /** @enum {string} */
    source: Open<"policy" | "guard" | "agent" | "plan">;
    title: string;
    prompt: string;
    schema?: {
        [key: string]: unknown;
    };
    fields?: {
        id: string;
        type: string;
        label?: string;
        options?: unknown[];
    }[];
    tool?: string;
    arguments?: {
        [key: string]: unknown;
    };
    target?: {
        instanceId?: string;
        agentType?: string;
        skillId?: string;
    };
    executor?: {
        /** @enum {string} */
        type: Open<"agent" | "platform">;
        id: string;
    };
    digest?: string;
    policyId?: string;
    guard?: string;
    approvers?: string[];
    quorum: number;
    approvals: {
        principal: string;
        resolution: string;
        comment?: string;
        /** Format: date-time */
        at: string;
    }[];
    /** Format: date-time */
    requestedAt: string;
    /** Format: date-time */
    expiresAt: string;
};

export type ApprovalRecord = {
    approvalId: string;
    requestId: string;
    /** @enum {string} */
    kind: Open<"approval" | "form" | "confirmation">;
    /** @enum {string} */
    source: Open<"policy" | "guard" | "agent" | "plan">;
    title?: string;
    tool?: string;
    arguments?: {
        [key: string]: unknown;
    };
    executor?: {
        /** @enum {string} */
        type: Open<"agent" | "platform">;
        id: string;
    };
    /** @constant */
    truncated?: true;
    outcome?: {
        /** @enum {string} */
        state: Open<"pending" | "succeeded" | "failed" | "expired">;
        errorCode?: string;
        /** Format: date-time */
        at?: string;
    };
    resolution: string;
    principal: {
        /** @enum {string} */
        type: Open<"credential" | "person" | "callback" | "page" | "slack" | "temporal" | "system">;
        id: string;
    };
    comment?: string;
    digest: string;
    argumentsChanged: boolean;
    ip?: string;
    /** Format: date-time */
    decidedAt: string;
};

export type ExportedApproval = {
    approvalId: string;
    requestId: string;
    /** @enum {string} */
    kind: Open<"approval" | "form" | "confirmation">;
    /** @enum {string} */
    source: Open<"policy" | "guard" | "agent" | "plan">;
    title?: string;
    tool?: string;
    arguments?: {
        [key: string]: unknown;
    };
    executor?: {
        /** @enum {string} */
        type: Open<"agent" | "platform">;
        id: string;
    };
    /** @constant */
    truncated?: true;
    outcome?: {
        /** @enum {string} */
        state: Open<"pending" | "succeeded" | "failed" | "expired">;
        errorCode?: string;
        /** Format: date-time */
        at?: string;
    };
    resolution: string;
    principal: {
        /** @enum {string} */
        type: Open<"credential" | "person" | "callback" | "page" | "slack" | "temporal" | "system">;
        id: string;
    };
    comment?: string;
    digest: string;
    argumentsChanged: boolean;
    ip?: string;
    /** Format: date-time */
    decidedAt: string;
    tenantId: string;
    messageId?: string;
    planId?: string;
};

export type AgentInstance = {
    instanceId: string;
    agentType: string;
    publicUrl: string | null;
    /** @enum {string} */
    deploymentMode: Open<"hosted" | "connected">;
    tenantId: string;
    meshId: string | null;
    /** @enum {string} */
    status: Open<"available" | "busy" | "draining" | "unhealthy" | "offline" | "unknown">;
    currentSessions: number;
    maxConcurrentSessions: number;
    maxConcurrentTasks: number;
    consecutiveFailures: number;
    lastSeen: string | null;
    /** Format: date-time */
    registeredAt: string;
    agentVersion: string | null;
    providerOrganization: string | null;
    providerUrl: string | null;
    agentCard: {
        [key: string]: unknown;
    };
    context: {
        [key: string]: unknown;
    };
};

export type Plan = {
    planId: string;
    tenantId: string;
    sessionId: string;
    description: string;
    /** @enum {string} */
    state: Open<"proposed" | "running" | "completed" | "failed" | "canceled" | "rejected">;
    maxParallel: number;
    autoApprove: boolean;
    createdBy: string;
    proposedBy: string | null;
    /** Format: date-time */
    createdAt: string;
    /** Format: date-time */
    approvalExpiresAt?: string;
    quorum: number;
    approvers: string[];
    approvalReason?: string;
    /** Format: date-time */
    startedAt?: string;
    /** Format: date-time */
    endedAt?: string;
    durationMs?: number;
    error?: {
        code: string;
        message: string;
    };
    failedStep?: number;
    progress: {
        total: number;
        pending: number;
        running: number;
        "input-required": number;
        completed: number;
        failed: number;
        skipped: number;
    };
    inputRequest?: InputRequest;
    decisions: {
        approvalId: string;
        requestId: string;
        /** @enum {string} */
        kind: Open<"approval" | "form" | "confirmation">;
        /** @enum {string} */
        source: Open<"policy" | "guard" | "agent" | "plan">;
        title?: string;
        tool?: string;
        arguments?: {
            [key: string]: unknown;
        };
        executor?: {
            /** @enum {string} */
            type: Open<"agent" | "platform">;
            id: string;
        };
        /** @constant */
        truncated?: true;
        outcome?: {
            /** @enum {string} */
            state: Open<"pending" | "succeeded" | "failed" | "expired">;
            errorCode?: string;
            /** Format: date-time */
            at?: string;
        };
        resolution: string;
        principal: {
            /** @enum {string} */
            type: Open<"credential" | "person" | "callback" | "page" | "slack" | "temporal" | "system">;
            id: string;
        };
        comment?: string;
        digest: string;
        argumentsChanged: boolean;
        /** Format: date-time */
        decidedAt: string;
    }[];
    steps: {
        stepId: string;
        index: number;
        description: string;
        agentType: string | null;
        instanceId: string | null;
        skillId: string | null;
        message: Part[];
        dependsOn: string[];
        requiresApproval: boolean;
        timeoutSeconds: number | null;
        maxAttempts: number;
        /** @enum {string} */
        state: Open<"pending" | "running" | "input-required" | "completed" | "failed" | "skipped">;
        attempts: number;
        messageId: string | null;
        worker?: {
            agentType: string;
            instanceId: string;
            /** Format: date-time */
            since: string;
        };
        /** Format: date-time */
        startedAt?: string;
        /** Format: date-time */
        endedAt?: string;
        durationMs?: number;
        error?: {
            code: string;
            message: string;
        };
    }[];
};

export type Policy = {
    policyId: string;
    tenantId: string;
    /** @enum {string} */
    scope: Open<"admission" | "dispatch" | "tool" | "plan" | "session">;
    name: string;
    /** @enum {string} */
    decision: Open<"allow" | "deny" | "require_approval" | "audit">;
    description: string;
    match: {
        tools?: string[];
        agentTypes?: string[];
        instanceIds?: string[];
        skills?: string[];
        actions?: string[];
        paths?: string[];
        hosts?: string[];
        arguments?: ({
            path: string;
            /** @enum {string} */
            op: Open<"eq" | "ne" | "contains">;
            value: string | number | boolean | null;
        } | {
            path: string;
            /** @enum {string} */
            op: "in";
            value: (string | number | boolean | null)[];
        } | {
            path: string;
            /** @enum {string} */
            op: Open<"gt" | "gte" | "lt" | "lte">;
            value: number | string;
        } | {
            path: string;
            /** @enum {string} */
            op: "matches";
            value: string;
        })[];
        not?: {
            tools?: string[];
            agentTypes?: string[];
            instanceIds?: string[];
            skills?: string[];
            actions?: string[];
            paths?: string[];
            hosts?: string[];
            arguments?: ({
                path: string;
                /** @enum {string} */
                op: Open<"eq" | "ne" | "contains">;
                value: string | number | boolean | null;
            } | {
                path: string;
                /** @enum {string} */
                op: "in";
                value: (string | number | boolean | null)[];
            } | {
                path: string;
                /** @enum {string} */
                op: Open<"gt" | "gte" | "lt" | "lte">;
                value: number | string;
            } | {
                path: string;
                /** @enum {string} */
                op: "matches";
                value: string;
            })[];
        };
    };
    reason: string;
    approvers: string[];
    evaluator: {
        approval?: {
            /** @default 1 */
            quorum: number;
            /** @default 86400 */
            timeoutSeconds: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject: Open<"fail" | "tell_agent">;
        };
        /** @constant */
        type: "cel";
        expression: string;
        /**
         * @default deny
         * @enum {string}
         */
        onError: Open<"deny" | "require_approval">;
    } | {
        approval?: {
            /** @default 1 */
            quorum: number;
            /** @default 86400 */
            timeoutSeconds: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject: Open<"fail" | "tell_agent">;
        };
        /** @constant */
        type: "webhook";
        url: string;
        secret?: string | null;
        /** @default 2000 */
        timeoutMs: number;
        /**
         * @default deny
         * @enum {string}
         */
        onError: Open<"deny" | "require_approval">;
        secretSet?: boolean;
    } | {
        approval?: {
            /** @default 1 */
            quorum: number;
            /** @default 86400 */
            timeoutSeconds: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject: Open<"fail" | "tell_agent">;
        };
    };
    priority: number;
    enabled: boolean;
    /** Format: date-time */
    endAt?: string;
    maxCalls?: number;
    callsAllowed?: number;
    /** Format: date-time */
    createdAt: string;
    /** Format: date-time */
    updatedAt: string;
    updatedBy: string | null;
};

export type Guard = {
    /** @constant */
    guard: "path";
    enabled: boolean;
    /** @enum {string} */
    decision: Open<"allow" | "require_approval" | "deny">;
    config: {
        /** @default [] */
        allowedRoots: string[];
    };
    updatedAt: string | null;
    updatedBy: string | null;
} | {
    /** @constant */
    guard: "egress";
    enabled: boolean;
    /** @enum {string} */
    decision: Open<"allow" | "require_approval" | "deny">;
    config: {
        /** @default [] */
        allowedHosts: string[];
        /** @default [] */
        deniedHosts: string[];
        /**
         * @default [
         *       "tool_arguments"
         *     ]
         */
        stages: Open<"message" | "output" | "tool_arguments" | "tool_result">[];
    };
    updatedAt: string | null;
    updatedBy: string | null;
} | {
    /** @constant */
    guard: "secrets";
    enabled: boolean;
    /** @enum {string} */
    decision: Open<"allow" | "require_approval" | "deny">;
    config: {
        /**
         * @default [
         *       "credentials",
         *       "payment_cards",
         *       "bank_accounts",
         *       "national_ids"
         *     ]
         */
        detect: Open<"credentials" | "payment_cards" | "bank_accounts" | "national_ids" | "email_addresses" | "phone_numbers">[];
        /**
         * @default [
         *       "message",
         *       "output",
         *       "tool_arguments",
         *       "tool_result"
         *     ]
         */
        stages: Open<"message" | "output" | "tool_arguments" | "tool_result">[];
    };
    updatedAt: string | null;
    updatedBy: string | null;
} | {
    /** @constant */
    guard: "prompt_injection";
    enabled: boolean;
    /** @enum {string} */
    decision: Open<"allow" | "require_approval" | "deny">;
    config: {
        /**
         * @default [
         *       "message",
         *       "tool_result"
         *     ]
         */
        stages: Open<"message" | "output" | "tool_arguments" | "tool_result">[];
    };
    updatedAt: string | null;
    updatedBy: string | null;
} | {
    /** @constant */
    guard: "limits";
    enabled: boolean;
    /** @enum {string} */
    decision: Open<"allow" | "require_approval" | "deny">;
    config: {
        /** @default 262144 */
        maxMessageBytes: number;
        /** @default 1048576 */
        maxOutputBytes: number;
        /** @default 262144 */
        maxArgumentBytes: number;
        /** @default 524288 */
        maxResultBytes: number;
        /** @default 32 */
        maxDepth: number;
        /** @default 8 */
        maxHops: number;
        /** @default null */
        maxRepeatedCalls: number | null;
    };
    updatedAt: string | null;
    updatedBy: string | null;
};

export type AlertRule = {
    ruleId: string;
    tenantId: string;
    name: string;
    description: string;
    condition: {
        event: string;
        filters?: {
            [key: string]: unknown;
        };
    };
    notifications: {
        channelId: string;
        /** @enum {string} */
        type: Open<"webhook" | "slack" | "email">;
        enabled: boolean;
        config: {
            url?: string;
            channelId?: string;
            recipients?: string[];
            maxAttempts?: number;
        };
        secretsSet: string[];
        /** @constant */
        unreadable?: true;
        receiver?: {
            /** @constant */
            state: "unavailable";
            /** Format: date-time */
            since: string;
            /** Format: date-time */
            nextProbeAt: string;
        };
    }[];
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    threshold: number;
    windowSeconds: number;
    cooldownSeconds: number;
    approvers: string[];
    writers: string[];
    enabled: boolean;
    /** Format: date-time */
    createdAt: string;
    /** Format: date-time */
    updatedAt: string;
    updatedBy: string | null;
};

export type Delivery = {
    deliveryId: string;
    ruleId: string | null;
    taskId?: string;
    configId?: string;
    eventType: string;
    url: string;
    /** @enum {string} */
    status: Open<"pending" | "delivered" | "failed" | "dropped">;
    attempts: {
        /** Format: date-time */
        at: string;
        statusCode: number | null;
        responseTimeMs: number;
        success: boolean;
        error?: string;
    }[];
    /** Format: date-time */
    createdAt: string;
    /** Format: date-time */
    nextAttemptAt?: string;
    receiver?: {
        /** @constant */
        state: "unavailable";
        /** Format: date-time */
        since: string;
        /** Format: date-time */
        nextProbeAt: string;
    };
};

export type EventRecord = PlatformEvent | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    eventType: string;
    type: string;
    category: string;
    event: {
        [key: string]: unknown;
    };
};

export type PlatformEvent = {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "agent.registered";
    /** @constant */
    type: "agent.registered";
    /** @constant */
    category: "agent";
    event: {
        agentType: string;
        instanceId: string;
        tenantId: string;
        /** @enum {string} */
        connectMode: Open<"connected" | "hosted">;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "agent.deregistered";
    /** @constant */
    type: "agent.deregistered";
    /** @constant */
    category: "agent";
    event: {
        agentType: string;
        instanceId: string;
        reason: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "agent.health_changed";
    /** @constant */
    type: "agent.health_changed";
    /** @constant */
    category: "agent";
    event: {
        agentType: string;
        instanceId: string;
        status: string;
        previousStatus: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "agent.capacity_changed";
    /** @constant */
    type: "agent.capacity_changed";
    /** @constant */
    category: "agent";
    event: {
        agentType: string;
        instanceId: string;
        currentSessions: number;
        maxConcurrentSessions: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "session.created";
    /** @constant */
    type: "session.created";
    /** @constant */
    category: "session";
    event: {
        sessionId: string;
        tenantId: string;
        createdBy: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "session.closed";
    /** @constant */
    type: "session.closed";
    /** @constant */
    category: "session";
    event: {
        sessionId: string;
        reason: string;
        durationMs: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "dispatch.sent";
    /** @constant */
    type: "dispatch.sent";
    /** @constant */
    category: "dispatch";
    event: {
        dispatchId: string;
        instanceId: string;
        skillId: string | null;
        sessionId: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "dispatch.success";
    /** @constant */
    type: "dispatch.success";
    /** @constant */
    category: "dispatch";
    event: {
        dispatchId: string;
        instanceId: string;
        durationMs: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "dispatch.failed";
    /** @constant */
    type: "dispatch.failed";
    /** @constant */
    category: "dispatch";
    event: {
        dispatchId: string;
        instanceId: string;
        error: string;
        durationMs: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "message.received";
    /** @constant */
    type: "message.received";
    /** @constant */
    category: "message";
    event: {
        messageId: string;
        sessionId: string;
        /** @enum {string} */
        role: Open<"user" | "agent">;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "message.completed";
    /** @constant */
    type: "message.completed";
    /** @constant */
    category: "message";
    event: {
        messageId: string;
        sessionId: string;
        /** @constant */
        role: "agent";
        durationMs: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "message.error";
    /** @constant */
    type: "message.error";
    /** @constant */
    category: "message";
    event: {
        messageId: string;
        sessionId: string;
        error: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "message.canceled";
    /** @constant */
    type: "message.canceled";
    /** @constant */
    category: "message";
    event: {
        messageId: string;
        sessionId: string;
        reason: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "message.input_required";
    /** @constant */
    type: "message.input_required";
    /** @constant */
    category: "message";
    event: {
        messageId: string;
        sessionId: string;
        requestId: string;
        /** @enum {string} */
        kind: Open<"approval" | "form" | "confirmation">;
        /** @enum {string} */
        source: Open<"policy" | "guard" | "agent" | "plan">;
        title: string;
        reminder?: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "message.resolved";
    /** @constant */
    type: "message.resolved";
    /** @constant */
    category: "message";
    event: {
        messageId: string;
        sessionId: string;
        requestId: string;
        resolution: string;
        resolvedBy: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "message.decision_effect";
    /** @constant */
    type: "message.decision_effect";
    /** @constant */
    category: "message";
    event: {
        messageId: string;
        requestId: string;
        /** @enum {string} */
        outcome: Open<"succeeded" | "failed" | "expired">;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "policy.denied";
    /** @constant */
    type: "policy.denied";
    /** @constant */
    category: "policy";
    event: {
        policyId: string;
        policyName: string;
        action: string;
        tool: string | null;
        reason: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "policy.audited";
    /** @constant */
    type: "policy.audited";
    /** @constant */
    category: "policy";
    event: {
        policyId: string;
        policyName: string;
        action: string;
        tool: string | null;
        reason: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "policy.approval_required";
    /** @constant */
    type: "policy.approval_required";
    /** @constant */
    category: "policy";
    event: {
        policyId: string;
        policyName: string;
        action: string;
        tool: string | null;
        messageId: string;
        sessionId: string;
        reminder?: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "guard.allowed";
    /** @constant */
    type: "guard.allowed";
    /** @constant */
    category: "guard";
    event: {
        guard: string;
        action: string;
        tool: string | null;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "guard.denied";
    /** @constant */
    type: "guard.denied";
    /** @constant */
    category: "guard";
    event: {
        guard: string;
        action: string;
        tool: string | null;
        reason: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "guard.approval_required";
    /** @constant */
    type: "guard.approval_required";
    /** @constant */
    category: "guard";
    event: {
        guard: string;
        action: string;
        tool: string | null;
        path: string | null;
        messageId: string;
        reminder?: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "plan.created";
    /** @constant */
    type: "plan.created";
    /** @constant */
    category: "plan";
    event: {
        planId: string;
        sessionId: string;
        stepCount: number;
        description: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "plan.approval_required";
    /** @constant */
    type: "plan.approval_required";
    /** @constant */
    category: "plan";
    event: {
        planId: string;
        sessionId: string;
        requestId: string;
        title: string;
        description: string;
        reason: string;
        policyId: string | null;
        guard: string | null;
        expiresAt: string;
        reminder?: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "plan.approved";
    /** @constant */
    type: "plan.approved";
    /** @constant */
    category: "plan";
    event: {
        planId: string;
        approvedBy: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "plan.completed";
    /** @constant */
    type: "plan.completed";
    /** @constant */
    category: "plan";
    event: {
        planId: string;
        sessionId: string;
        stepsCompleted: number;
        durationMs: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "plan.failed";
    /** @constant */
    type: "plan.failed";
    /** @constant */
    category: "plan";
    event: {
        planId: string;
        sessionId: string;
        failedStep: number;
        error: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "plan.canceled";
    /** @constant */
    type: "plan.canceled";
    /** @constant */
    category: "plan";
    event: {
        planId: string;
        sessionId: string;
        reason: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "plan.rejected";
    /** @constant */
    type: "plan.rejected";
    /** @constant */
    category: "plan";
    event: {
        planId: string;
        sessionId: string;
        rejectedBy: string | null;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "system.alert_triggered";
    /** @constant */
    type: "system.alert_triggered";
    /** @constant */
    category: "system";
    event: {
        ruleId: string;
        ruleName: string;
        threshold: number;
        windowSeconds: number;
        count: number;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "tenant.created";
    /** @constant */
    type: "tenant.created";
    /** @constant */
    category: "tenant";
    event: {
        tenantId: string;
        name: string;
    };
} | {
    eventId: string;
    source: string;
    /** @enum {string} */
    severity: Open<"info" | "warning" | "critical">;
    tenantId: string;
    sessionId: string;
    /** Format: date-time */
    timestamp: string;
    traceId?: string;
    /** @constant */
    eventType: "tenant.deleted";
    /** @constant */
    type: "tenant.deleted";
    /** @constant */
    category: "tenant";
    event: {
        tenantId: string;
        name: string;
    };
};

export type UsageRow = {
    agentType?: string | null;
    model?: string | null;
    instanceId?: string | null;
    day?: string | null;
    session?: string | null;
    user?: string | null;
    credential?: string | null;
    messages: number;
    dispatches: number;
    toolCalls: number;
    inputTokens: number;
    outputTokens: number;
    totalTokens: number;
    durationMs: number;
    costUsd: number;
};

export type ModelPrice = {
    model: string;
    inputPerMillion: number;
    outputPerMillion: number;
};

export type KnowledgeBase = {
    namespace: string;
    displayName: string;
    description: string;
    /** @enum {string} */
    visibility: Open<"private" | "tenant">;
    config: {
        /** @default 5 */
        topK: number;
        /** @default 0.2 */
        minScore: number;
        /** @enum {string} */
        mode?: Open<"hybrid" | "semantic" | "lexical">;
        /** @default 200 */
        chunkTokens: number;
        /** @default 30 */
        chunkOverlap: number;
    };
    /** Format: date-time */
    createdAt: string;
    /** Format: date-time */
    updatedAt: string;
};

export type SearchResult = {
    text: string;
    sourceId: string;
    score: number;
    tags: string[];
    chunkId: string;
    namespace: string;
    scores: {
        semantic?: number;
        lexical?: number;
    };
    title: string;
    metadata: {
        [key: string]: unknown;
    };
    citation: {
        url?: string;
        filename?: string;
        pageStart?: number;
        pageEnd?: number;
        headingPath: string[];
        charStart: number;
        charEnd: number;
    };
};

export type KnowledgeStats = {
    sources: number;
    chunks: number;
    tokens: number;
    bytes: number;
    embeddingModel: string | null;
    dimensions: number | null;
    staleChunks: number;
    lastIngestedAt: string | null;
};

export type KnowledgeSource = {
    sourceId: string;
    /** @constant */
    status: "completed";
    chunkCount: number;
    tags: string[];
    /** Format: date-time */
    createdAt: string;
    /** Format: date-time */
    updatedAt: string;
    title: string;
    filename?: string;
    url?: string;
    contentType: string;
    sourceType?: string;
    metadata: {
        [key: string]: unknown;
    };
    contentHash: string;
    tokens: number;
    bytes: number;
    stale: boolean;
};

export type AuthGetTokenRequest = {
    clientId: string;
    clientSecret: string;
    /** @default credential */
    agentType?: string;
    tenantId?: string;
    scopes?: ("read" | "admin" | "full")[];
    expiresIn?: number;
    userId?: string;
    sessionId?: string;
    agentTypes?: string[];
};

export type AuthGetTokenResponse = {
    token: string;
    /** @constant */
    tokenType: "Bearer";
    expiresIn: number;
    scopes: Open<"read" | "admin" | "full">[];
};

export type AuthJwksResponse = {
    keys: {
        [key: string]: unknown;
    }[];
};

export type AuthRevokeUserRequest = {
    userId: string;
};

export type AuthRevokeUserResponse = {
    /** @constant */
    ok: true;
    userId: string;
};

export type CredentialsCreateRequest = {
    name: string;
    scopes: ("read" | "admin" | "full")[];
    agentTypes?: ("*" | string)[];
    /** Format: date-time */
    expiresAt?: string;
};

export type CredentialsCreateResponse = {
    /** @constant */
    ok: true;
    credential: Credential;
    clientSecret: string;
};

export type CredentialsGetRequest = {
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
};

export type CredentialsGetResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    credentials: Credential[];
};

export type CredentialsRotateRequest = {
    credentialId: string;
    /** @default 86400 */
    overlapSeconds?: number;
};

export type CredentialsRotateResponse = {
    /** @constant */
    ok: true;
    credential: Credential;
    clientSecret: string;
};

export type CredentialsRevokeRequest = {
    credentialId: string;
};

export type CredentialsRevokeResponse = {
    /** @constant */
    ok: true;
    credentialId: string;
};

export type SessionsInitRequest = {
    instanceId?: string;
    agentType?: string;
    userId?: string;
    metadata?: {
        [key: string]: unknown;
    };
    ordered?: boolean;
    reserve?: boolean;
    /** @default 1800 */
    idleTimeoutSeconds?: number;
};

export type SessionsInitResponse = {
    /** @constant */
    ok: true;
    sessionId: string;
    instanceId: string | null;
    agentType: string | null;
    session: SessionSummary;
};

export type SessionsGetRequest = {
    /** @enum {string} */
    status?: "active" | "paused" | "completed" | "expired";
    agentType?: string;
    /** Format: date-time */
    since?: string;
    /** Format: date-time */
    until?: string;
    userId?: string;
    credentialId?: string;
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
    cursor?: string;
};

export type SessionsGetResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    sessions: SessionSummary[];
    nextCursor?: string;
};

export type SessionsGetByIdRequest = {
    sessionId: string;
};

export type SessionsGetByIdResponse = {
    /** @constant */
    ok: true;
    session: SessionDetails;
};

export type SessionsCloseRequest = {
    sessionId: string;
    reason?: string;
};

export type SessionsCloseResponse = {
    /** @constant */
    ok: true;
    sessionId: string;
    /** @constant */
    status: "completed";
};

export type SessionsInterruptRequest = {
    ids?: string[];
    sessionId?: string;
};

export type SessionsInterruptResponse = {
    /** @constant */
    ok: true;
    requested: number;
    interrupted: number;
    sessionIds: string[];
};

export type SessionsInviteRequest = {
    sessionId: string;
    agentType: string;
    instanceId?: string;
};

export type SessionsInviteResponse = {
    /** @constant */
    ok: true;
    sessionId: string;
    agent: {
        agentType: string;
        instanceId: string;
        /** Format: date-time */
        joinedAt: string;
        joinReason: string;
    };
};

export type MessagesGetRequest = {
    sessionId?: string;
    /** @enum {string} */
    state?: "submitted" | "working" | "input-required" | "completed" | "failed" | "canceled";
    agentType?: string;
    instanceId?: string;
    errorCode?: string;
    /** Format: date-time */
    since?: string;
    /** Format: date-time */
    until?: string;
    userId?: string;
    credentialId?: string;
    clientMessageId?: string;
    text?: string;
    /** @enum {string} */
    waitsFor?: "agent" | "room" | "turn" | "evaluator" | "quota" | "person";
    waitedMs?: number;
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
    cursor?: string;
};

export type MessagesGetResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    messages: MessageRecord[];
    nextCursor?: string;
};

export type MessagesGetByIdRequest = {
    messageId: string;
};

export type MessagesGetByIdResponse = {
    /** @constant */
    ok: true;
    message: MessageRecord;
};

export type MessagesCancelRequest = {
    messageId: string;
    reason?: string;
};

export type MessagesCancelResponse = {
    /** @constant */
    ok: true;
    messageId: string;
};

export type MessagesRetryRequest = {
    messageId: string;
    idempotencyKey?: string;
    confirm?: boolean;
};

export type MessagesRetryResponse = {
    /** @constant */
    ok: true;
    messageId: string;
    sessionId: string;
    retryOf: string;
};

export type MessagesPendingRequest = {
    sessionId?: string;
    userId?: string;
    credentialId?: string;
    /** @default 50 */
    limit?: number;
    /** @default 0 */
    offset?: number;
};

export type MessagesPendingResponse = {
    /** @constant */
    ok: true;
    messages: MessageRecord[];
    total: number;
};

export type MessagesGetGroupsRequest = {
    /** @enum {string} */
    by: "error_code" | "waits_for" | "agent_type";
    /** @enum {string} */
    state?: "submitted" | "working" | "input-required" | "completed" | "failed" | "canceled";
    /** Format: date-time */
    since?: string;
    waitedMs?: number;
};

export type MessagesGetGroupsResponse = {
    /** @constant */
    ok: true;
    groups: {
        key: string;
        count: number;
        /** Format: date-time */
        oldestAt: string;
        /** Format: date-time */
        newestAt: string;
        sampleMessageId: string;
    }[];
};

export type MessagesGetRatesRequest = {
    /** @default 24 */
    hours?: number;
};

export type MessagesGetRatesResponse = {
    /** @constant */
    ok: true;
    hours: {
        /** Format: date-time */
        hour: string;
        accepted: number;
        failed: number;
        latencyMs: {
            p50: number | null;
            p95: number | null;
        };
    }[];
};

export type MessagesResolveRequest = {
    resolution: string | {
        [key: string]: unknown;
    };
    requestId?: string;
    callbackToken?: string;
    comment?: string;
    data?: {
        [key: string]: unknown;
    };
    arguments?: {
        [key: string]: unknown;
    };
    digest?: string;
};

export type MessagesResolveResponse = {
    /** @constant */
    ok: true;
    messageId: string;
    planId?: string;
    /** @enum {string} */
    newState: Open<"submitted" | "working" | "input-required" | "completed" | "failed" | "canceled">;
    resolution: string | {
        [key: string]: unknown;
    };
};

export type MessagesGetApprovalsRequest = {
    messageId?: string;
    planId?: string;
};

export type MessagesGetApprovalsResponse = {
    /** @constant */
    ok: true;
    approvals: ApprovalRecord[];
};

export type MessagesGetHeldOutputRequest = {
    messageId: string;
};

export type MessagesGetHeldOutputResponse = {
    /** @constant */
    ok: true;
    requestId: string;
    digest: string;
    output: {
        /** @enum {string} */
        state: Open<"completed" | "input-required">;
        artifacts: Artifact[];
        statusMessage?: {
            /** @constant */
            kind: "message";
            messageId: string;
            /** @enum {string} */
            role: Open<"user" | "agent">;
            parts: Part[];
            contextId?: string;
            taskId?: string;
            referenceTaskIds?: string[];
            extensions?: string[];
            metadata?: {
                [key: string]: unknown;
            };
        };
        inputRequest?: {
            /** @enum {string} */
            kind?: Open<"approval" | "form" | "confirmation">;
            title?: string;
            prompt?: string;
            schema?: {
                [key: string]: unknown;
            };
            fields?: {
                id: string;
                type: string;
                label?: string;
                options?: unknown[];
            }[];
            tool?: string;
            arguments?: {
                [key: string]: unknown;
            };
        };
    };
};

export type MessagesExportApprovalsRequest = {
    /** Format: date-time */
    since?: string;
    /** Format: date-time */
    until?: string;
};

export type MessagesExportApprovalsItem = ExportedApproval;

export type RequestsGetRequest = {
    /**
     * @default open
     * @enum {string}
     */
    state?: "open" | "decided" | "expired" | "withdrawn" | "all";
    mine?: boolean;
    approver?: string;
    tool?: string;
    agentType?: string;
    userId?: string;
    sessionId?: string;
    /** @enum {string} */
    kind?: "approval" | "form" | "confirmation";
    /** @enum {string} */
    source?: "policy" | "guard" | "agent" | "plan";
    /** Format: date-time */
    before?: string;
    /** Format: date-time */
    after?: string;
    /**
     * @default oldest
     * @enum {string}
     */
    sort?: "oldest" | "newest" | "expires";
    /** @default 25 */
    pageSize?: number;
    cursor?: string;
};

export type RequestsGetResponse = {
    /** @constant */
    ok: true;
    requests: {
        requestId: string;
        messageId?: string;
        planId?: string;
        sessionId: string;
        agentType?: string;
        userId?: string;
        sentBy: {
            /** @enum {string} */
            type: Open<"credential" | "agent" | "person" | "callback" | "page" | "slack" | "system" | "schedule" | "operator" | "temporal">;
            id: string;
            name?: string;
        };
        /** @enum {string} */
        state: Open<"open" | "decided" | "expired" | "withdrawn">;
        inputRequest: InputRequest;
        about: string;
        mayAnswer: boolean;
        decided?: {
            resolution: string;
            principals: {
                /** @enum {string} */
                type: Open<"credential" | "person" | "callback" | "page" | "slack" | "temporal" | "system">;
                id: string;
                name?: string;
            }[];
            /** Format: date-time */
            at: string;
            comment?: string;
        };
        outcome?: {
            /** @enum {string} */
            state: Open<"pending" | "succeeded" | "failed" | "expired">;
            errorCode?: string;
            /** Format: date-time */
            at?: string;
        };
        /** @constant */
        truncated?: true;
    }[];
    nextCursor?: string;
    count?: number;
    /** @constant */
    countEstimated?: true;
};

export type RequestsGetByIdRequest = {
    requestId: string;
};

export type RequestsGetByIdResponse = {
    /** @constant */
    ok: true;
    request: {
        requestId: string;
        messageId?: string;
        planId?: string;
        sessionId: string;
        agentType?: string;
        userId?: string;
        sentBy: {
            /** @enum {string} */
            type: Open<"credential" | "agent" | "person" | "callback" | "page" | "slack" | "system" | "schedule" | "operator" | "temporal">;
            id: string;
            name?: string;
        };
        /** @enum {string} */
        state: Open<"open" | "decided" | "expired" | "withdrawn">;
        inputRequest: InputRequest;
        about: string;
        mayAnswer: boolean;
        decided?: {
            resolution: string;
            principals: {
                /** @enum {string} */
                type: Open<"credential" | "person" | "callback" | "page" | "slack" | "temporal" | "system">;
                id: string;
                name?: string;
            }[];
            /** Format: date-time */
            at: string;
            comment?: string;
        };
        outcome?: {
            /** @enum {string} */
            state: Open<"pending" | "succeeded" | "failed" | "expired">;
            errorCode?: string;
            /** Format: date-time */
            at?: string;
        };
        /** @constant */
        truncated?: true;
    };
};

export type RequestsGetSimilarRequest = {
    requestId: string;
};

export type RequestsGetSimilarResponse = {
    /** @constant */
    ok: true;
    requests: {
        requestId: string;
        messageId?: string;
        planId?: string;
        sessionId: string;
        agentType?: string;
        userId?: string;
        sentBy: {
            /** @enum {string} */
            type: Open<"credential" | "agent" | "person" | "callback" | "page" | "slack" | "system" | "schedule" | "operator" | "temporal">;
            id: string;
            name?: string;
        };
        /** @enum {string} */
        state: Open<"open" | "decided" | "expired" | "withdrawn">;
        inputRequest: InputRequest;
        about: string;
        mayAnswer: boolean;
        decided?: {
            resolution: string;
            principals: {
                /** @enum {string} */
                type: Open<"credential" | "person" | "callback" | "page" | "slack" | "temporal" | "system">;
                id: string;
                name?: string;
            }[];
            /** Format: date-time */
            at: string;
            comment?: string;
        };
        outcome?: {
            /** @enum {string} */
            state: Open<"pending" | "succeeded" | "failed" | "expired">;
            errorCode?: string;
            /** Format: date-time */
            at?: string;
        };
        /** @constant */
        truncated?: true;
    }[];
};

export type RequestsResolveManyRequest = {
    requestIds: string[];
    resolution: string;
    comment?: string;
    /** @default false */
    dryRun?: boolean;
};

export type RequestsResolveManyResponse = {
    /** @constant */
    ok: true;
    results: {
        requestId: string;
        ok: boolean;
        code?: string;
    }[];
};

export type RequestsGetReceiptRequest = {
    requestId: string;
};

export type RequestsGetReceiptResponse = {
    /** @constant */
    ok: true;
    receipt: string;
    salt: string;
};

export type AgentsRegisterRequest = {
    agentType: string;
    instanceId?: string;
    /** @enum {string} */
    deploymentMode?: "hosted" | "connected";
    /** Format: uri */
    publicUrl?: string;
    /** Format: uri */
    url?: string;
    agentCard?: {
        [key: string]: unknown;
    };
    skills?: ({
        id: string;
        name?: string;
    } & {
        [key: string]: unknown;
    })[];
    tools?: (string | {
        name: string;
        description?: string;
        inputSchema?: {
            [key: string]: unknown;
        };
    })[];
    /** @default 10 */
    maxConcurrentSessions?: number;
    /** @default 0 */
    maxConcurrentTasks?: number;
    agentVersion?: string;
    providerOrganization?: string;
    providerUrl?: string;
    context?: {
        [key: string]: unknown;
    };
    dispatchAuth?: {
        /** @constant */
        type: "bearer_jwt";
    } | {
        /** @constant */
        type: "api_key";
        name: string;
        value: string;
    } | {
        /** @constant */
        type: "oauth2_client_credentials";
        /** Format: uri */
        tokenUrl: string;
        clientId: string;
        clientSecret: string;
        scope?: string;
    };
};

export type AgentsRegisterResponse = {
    /** @constant */
    ok: true;
    tenantId: string;
    instanceId: string;
    /** @enum {string} */
    deploymentMode: Open<"hosted" | "connected">;
    connectUrl: string | null;
    jwksUrl: string;
    dispatchAuth: {
        /** @constant */
        type: "bearer_jwt";
    } | {
        /** @constant */
        type: "api_key";
        name: string;
    } | {
        /** @constant */
        type: "oauth2_client_credentials";
        /** Format: uri */
        tokenUrl: string;
        clientId: string;
        scope?: string;
    };
    agent: AgentInstance;
    warnings?: string[];
};

export type AgentsHeartbeatRequest = {
    instanceId: string;
    /** @enum {string} */
    status?: "available" | "busy" | "draining" | "unhealthy";
    currentSessions?: number;
    maxConcurrentSessions?: number;
    maxConcurrentTasks?: number;
    consecutiveFailures?: number;
} | {
    /** @constant */
    v: 1;
    type?: string;
    id?: string;
    ts?: string;
    payload: {
        instanceId: string;
        /** @enum {string} */
        status?: "available" | "busy" | "draining" | "unhealthy";
        currentSessions?: number;
        maxConcurrentSessions?: number;
        maxConcurrentTasks?: number;
        consecutiveFailures?: number;
    };
};

export type AgentsHeartbeatResponse = {
    /** @constant */
    ok: true;
};

export type AgentsGetRequest = {
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
    /** @enum {string} */
    status?: "available" | "busy" | "draining" | "unhealthy" | "offline" | "unknown";
    agentType?: string;
    /** @enum {string} */
    deploymentMode?: "hosted" | "connected";
    /** @constant */
    failing?: true;
    registered?: boolean;
};

export type AgentsGetResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    agents: {
        instanceId: string;
        agentType: string;
        publicUrl: string | null;
        /** @enum {string} */
        deploymentMode: Open<"hosted" | "connected">;
        tenantId: string;
        meshId: string | null;
        /** @enum {string} */
        status: Open<"available" | "busy" | "draining" | "unhealthy" | "offline" | "unknown">;
        currentSessions: number;
        maxConcurrentSessions: number;
        maxConcurrentTasks: number;
        consecutiveFailures: number;
        lastSeen: string | null;
        /** Format: date-time */
        registeredAt: string;
        agentVersion: string | null;
        providerOrganization: string | null;
        providerUrl: string | null;
        agentCard: {
            [key: string]: unknown;
        };
        context: {
            [key: string]: unknown;
        };
        queueLength: number;
        inFlight: number;
        sentPerMinute: number;
        failedLastHour: number;
        latencyMs: {
            p50: number | null;
            p95: number | null;
        };
        lastError?: string;
        /** Format: date-time */
        failingSince?: string;
    }[];
};

export type AgentsGetTypesRequest = Record<string, never>;

export type AgentsGetTypesResponse = {
    /** @constant */
    ok: true;
    agentTypes: {
        agentType: string;
        instances: number;
        online: number;
        draining: number;
        unhealthy: number;
        inFlight: number;
        maxConcurrentSessions: number | null;
        queueLength: number;
        /** Format: date-time */
        queuedSince?: string;
        failedLastHour: number;
        lastError?: string;
        failing: number;
        /** Format: date-time */
        failingSince?: string;
    }[];
};

export type AgentsGetByIdRequest = {
    instanceId: string;
};

export type AgentsGetByIdResponse = {
    /** @constant */
    ok: true;
    agent: AgentInstance;
};

export type AgentsDeregisterRequest = {
    instanceId: string;
    reason?: string;
};

export type AgentsDeregisterResponse = {
    /** @constant */
    ok: true;
    instanceId: string;
};

export type AgentsDrainRequest = {
    instanceId: string;
};

export type AgentsDrainResponse = {
    /** @constant */
    ok: true;
    instanceId: string;
    /** @enum {string} */
    status: Open<"available" | "busy" | "draining" | "unhealthy" | "offline" | "unknown">;
};

export type AgentsUndrainRequest = {
    instanceId: string;
};

export type AgentsUndrainResponse = {
    /** @constant */
    ok: true;
    instanceId: string;
    /** @enum {string} */
    status: Open<"available" | "busy" | "draining" | "unhealthy" | "offline" | "unknown">;
};

export type AgentsGetConnectionRequest = {
    instanceId: string;
};

export type AgentsGetConnectionResponse = {
    /** @constant */
    ok: true;
    connection: {
        /** @enum {string} */
        transport: Open<"ws" | "callback">;
        /** @enum {string} */
        connectionStatus: Open<"unknown" | "online" | "healthy" | "degraded" | "offline">;
        degradedReason?: string;
        ownerMeshId: string | null;
        connectedSince: string | null;
        lastDispatchAt: string | null;
        dispatchesSucceeded: number;
        dispatchesFailed: number;
        lastDispatchError: string | null;
        latencyMs: {
            p50: number | null;
            p95: number | null;
            count: number;
            /** @constant */
            windowSeconds: 3600;
        };
        /** @enum {string} */
        status: Open<"available" | "busy" | "draining" | "unhealthy" | "offline" | "unknown">;
        lastSeen: string | null;
    };
};

export type AgentsGetConnectionStatsRequest = {
    agentType?: string;
};

export type AgentsGetConnectionStatsResponse = {
    /** @constant */
    ok: true;
    stats: {
        total: number;
        byDeploymentMode: {
            [key: string]: number;
        };
        byStatus: {
            [key: string]: number;
        };
        byTransport: {
            ws: number;
            callback: number;
        };
    };
};

export type AgentsAllowTypeRequest = {
    agentType: string;
};

export type AgentsAllowTypeResponse = {
    /** @constant */
    ok: true;
    agentType: string;
    wasNew: boolean;
};

export type AgentsDisallowTypeRequest = {
    agentType: string;
};

export type AgentsDisallowTypeResponse = {
    /** @constant */
    ok: true;
    agentType: string;
    removedFromPolicy: boolean;
    deregisteredCount: number;
};

export type AgentsSetDefaultRequest = {
    agentType: string | null;
};

export type AgentsSetDefaultResponse = {
    /** @constant */
    ok: true;
    defaultAgentType: string | null;
};

export type ToolsGetRequest = Record<string, never>;

export type ToolsGetResponse = {
    /** @constant */
    ok: true;
    tools: {
        name: string;
        offeredBy: string[];
        /** @enum {string} */
        source: Open<"agent" | "platform">;
        description?: string;
        inputSchema?: {
            [key: string]: unknown;
        };
        digest: string;
        owners?: string[];
    }[];
};

export type ToolsSetOwnerRequest = {
    tool: string;
    agentTypes: string[] | null;
};

export type ToolsSetOwnerResponse = {
    /** @constant */
    ok: true;
    tool: string;
    agentTypes: string[] | null;
};

export type ToolsCallRequest = {
    tool: string;
    /** @default {} */
    arguments?: {
        [key: string]: unknown;
    };
    target?: {
        instanceId?: string;
        agentType?: string;
        skillId?: string;
    } | null;
    dispatchId?: string | null;
    sessionId?: string | null;
    deadlineMs?: number | null;
    idempotencyKey?: string | null;
    instanceId?: string;
};

export type ToolsCallResponse = {
    /** @constant */
    ok: true;
    result: unknown;
} | {
    /** @constant */
    ok: false;
    error: {
        code: string;
        /** @default  */
        message: string;
        policyId?: string;
        /** @default false */
        retryable: boolean;
        /** @constant */
        approved?: true;
    };
};

export type PlansCreateRequest = {
    sessionId: string;
    description: string;
    steps: {
        stepId?: string;
        description: string;
        agentType?: string;
        instanceId?: string;
        skillId?: string;
        message: string | Part[];
        /** @default [] */
        dependsOn?: string[];
        /** @default false */
        requiresApproval?: boolean;
        timeoutSeconds?: number;
        /** @default 1 */
        maxAttempts?: number;
    }[];
    /** @default 4 */
    maxParallel?: number;
    /** @default false */
    autoApprove?: boolean;
};

export type PlansCreateResponse = {
    /** @constant */
    ok: true;
    plan: Plan;
};

export type PlansGetRequest = {
    sessionId?: string;
    /** @enum {string} */
    state?: "proposed" | "running" | "completed" | "failed" | "canceled" | "rejected";
    /** Format: date-time */
    since?: string;
    /** Format: date-time */
    until?: string;
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
    cursor?: string;
};

export type PlansGetResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    plans: {
        planId: string;
        tenantId: string;
        sessionId: string;
        description: string;
        /** @enum {string} */
        state: Open<"proposed" | "running" | "completed" | "failed" | "canceled" | "rejected">;
        maxParallel: number;
        autoApprove: boolean;
        createdBy: string;
        proposedBy: string | null;
        /** Format: date-time */
        createdAt: string;
        /** Format: date-time */
        approvalExpiresAt?: string;
        quorum: number;
        approvers: string[];
        approvalReason?: string;
        /** Format: date-time */
        startedAt?: string;
        /** Format: date-time */
        endedAt?: string;
        durationMs?: number;
        error?: {
            code: string;
            message: string;
        };
        failedStep?: number;
        progress: {
            total: number;
            pending: number;
            running: number;
            "input-required": number;
            completed: number;
            failed: number;
            skipped: number;
        };
    }[];
    nextCursor?: string;
};

export type PlansGetByIdRequest = {
    planId: string;
};

export type PlansGetByIdResponse = {
    /** @constant */
    ok: true;
    plan: Plan;
};

export type PlansApproveRequest = {
    planId: string;
    comment?: string;
};

export type PlansApproveResponse = {
    /** @constant */
    ok: true;
    plan: Plan;
};

export type PlansRejectRequest = {
    planId: string;
    comment?: string;
};

export type PlansRejectResponse = {
    /** @constant */
    ok: true;
    plan: Plan;
};

export type PlansCancelRequest = {
    planId: string;
    reason?: string;
};

export type PlansCancelResponse = {
    /** @constant */
    ok: true;
    plan: Plan;
};

export type PoliciesCreatePolicyRequest = {
    name: string;
    /** @enum {string} */
    decision: "allow" | "deny" | "require_approval" | "audit";
    /** @default  */
    description?: string;
    /** @default {} */
    match?: {
        tools?: string[];
        agentTypes?: string[];
        instanceIds?: string[];
        skills?: string[];
        actions?: string[];
        paths?: string[];
        hosts?: string[];
        arguments?: ({
            path: string;
            /** @enum {string} */
            op: "eq" | "ne" | "contains";
            value: string | number | boolean | null;
        } | {
            path: string;
            /** @enum {string} */
            op: "in";
            value: (string | number | boolean | null)[];
        } | {
            path: string;
            /** @enum {string} */
            op: "gt" | "gte" | "lt" | "lte";
            value: number | string;
        } | {
            path: string;
            /** @enum {string} */
            op: "matches";
            value: string;
        })[];
        not?: {
            tools?: string[];
            agentTypes?: string[];
            instanceIds?: string[];
            skills?: string[];
            actions?: string[];
            paths?: string[];
            hosts?: string[];
            arguments?: ({
                path: string;
                /** @enum {string} */
                op: "eq" | "ne" | "contains";
                value: string | number | boolean | null;
            } | {
                path: string;
                /** @enum {string} */
                op: "in";
                value: (string | number | boolean | null)[];
            } | {
                path: string;
                /** @enum {string} */
                op: "gt" | "gte" | "lt" | "lte";
                value: number | string;
            } | {
                path: string;
                /** @enum {string} */
                op: "matches";
                value: string;
            })[];
        };
    };
    /** @default  */
    reason?: string;
    /** @default [] */
    approvers?: string[];
    /** @default {} */
    evaluator?: {
        approval?: {
            /** @default 1 */
            quorum?: number;
            /** @default 86400 */
            timeoutSeconds?: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf?: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject?: "fail" | "tell_agent";
        };
        /** @constant */
        type: "cel";
        expression: string;
        /**
         * @default deny
         * @enum {string}
         */
        onError?: "deny" | "require_approval";
    } | {
        approval?: {
            /** @default 1 */
            quorum?: number;
            /** @default 86400 */
            timeoutSeconds?: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf?: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject?: "fail" | "tell_agent";
        };
        /** @constant */
        type: "webhook";
        url: string;
        secret?: string | null;
        /** @default 2000 */
        timeoutMs?: number;
        /**
         * @default deny
         * @enum {string}
         */
        onError?: "deny" | "require_approval";
        secretSet?: boolean;
    } | {
        approval?: {
            /** @default 1 */
            quorum?: number;
            /** @default 86400 */
            timeoutSeconds?: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf?: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject?: "fail" | "tell_agent";
        };
    };
    /** @default 100 */
    priority?: number;
    /** @default true */
    enabled?: boolean;
    endAt?: string | null;
    /** @default null */
    maxCalls?: number | null;
    tenantId?: string;
    /** @enum {string} */
    scope: "admission" | "dispatch" | "tool" | "plan" | "session";
};

export type PoliciesCreatePolicyResponse = {
    policy: Policy;
};

export type PoliciesGetPoliciesRequest = {
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
    tenantId?: string;
    /** @enum {string} */
    scope?: "admission" | "dispatch" | "tool" | "plan" | "session";
    enabled?: boolean;
};

export type PoliciesGetPoliciesResponse = {
    count: number;
    page: number;
    pageSize: number;
    totalPages: number;
    policies: Policy[];
};

export type PoliciesGetPolicyByIdRequest = {
    tenantId?: string;
    policyId: string;
};

export type PoliciesGetPolicyByIdResponse = {
    policy: Policy;
};

export type PoliciesUpdatePolicyRequest = {
    name?: string;
    /** @enum {string} */
    decision?: "allow" | "deny" | "require_approval" | "audit";
    description?: string;
    match?: {
        tools?: string[];
        agentTypes?: string[];
        instanceIds?: string[];
        skills?: string[];
        actions?: string[];
        paths?: string[];
        hosts?: string[];
        arguments?: ({
            path: string;
            /** @enum {string} */
            op: "eq" | "ne" | "contains";
            value: string | number | boolean | null;
        } | {
            path: string;
            /** @enum {string} */
            op: "in";
            value: (string | number | boolean | null)[];
        } | {
            path: string;
            /** @enum {string} */
            op: "gt" | "gte" | "lt" | "lte";
            value: number | string;
        } | {
            path: string;
            /** @enum {string} */
            op: "matches";
            value: string;
        })[];
        not?: {
            tools?: string[];
            agentTypes?: string[];
            instanceIds?: string[];
            skills?: string[];
            actions?: string[];
            paths?: string[];
            hosts?: string[];
            arguments?: ({
                path: string;
                /** @enum {string} */
                op: "eq" | "ne" | "contains";
                value: string | number | boolean | null;
            } | {
                path: string;
                /** @enum {string} */
                op: "in";
                value: (string | number | boolean | null)[];
            } | {
                path: string;
                /** @enum {string} */
                op: "gt" | "gte" | "lt" | "lte";
                value: number | string;
            } | {
                path: string;
                /** @enum {string} */
                op: "matches";
                value: string;
            })[];
        };
    };
    reason?: string;
    approvers?: string[];
    evaluator?: {
        approval?: {
            /** @default 1 */
            quorum?: number;
            /** @default 86400 */
            timeoutSeconds?: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf?: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject?: "fail" | "tell_agent";
        };
        /** @constant */
        type: "cel";
        expression: string;
        /**
         * @default deny
         * @enum {string}
         */
        onError?: "deny" | "require_approval";
    } | {
        approval?: {
            /** @default 1 */
            quorum?: number;
            /** @default 86400 */
            timeoutSeconds?: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf?: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject?: "fail" | "tell_agent";
        };
        /** @constant */
        type: "webhook";
        url: string;
        secret?: string | null;
        /** @default 2000 */
        timeoutMs?: number;
        /**
         * @default deny
         * @enum {string}
         */
        onError?: "deny" | "require_approval";
        secretSet?: boolean;
    } | {
        approval?: {
            /** @default 1 */
            quorum?: number;
            /** @default 86400 */
            timeoutSeconds?: number;
            reminderSeconds?: number;
            escalateTo?: string[];
            /** @default true */
            allowSelf?: boolean;
            /**
             * @default fail
             * @enum {string}
             */
            onReject?: "fail" | "tell_agent";
        };
    };
    priority?: number;
    enabled?: boolean;
    endAt?: string | null;
    maxCalls?: number | null;
    tenantId?: string;
    policyId: string;
};

export type PoliciesUpdatePolicyResponse = {
    policy: Policy;
};

export type PoliciesDeletePolicyRequest = {
    tenantId?: string;
    policyId: string;
};

export type PoliciesDeletePolicyResponse = {
    /** @constant */
    ok: true;
    policyId: string;
};

export type PoliciesTestPolicyRequest = {
    tenantId?: string;
    /** @enum {string} */
    scope: "admission" | "dispatch" | "tool" | "plan" | "session";
    action: string;
    tool?: string;
    agentType?: string;
    instanceId?: string;
    skillId?: string;
    sessionId?: string;
    userId?: string;
    arguments?: {
        [key: string]: unknown;
    };
};

export type PoliciesTestPolicyResponse = {
    /** @enum {string} */
    decision: Open<"allow" | "deny" | "require_approval">;
    policyId?: string;
    matched: boolean;
    trace: {
        policyId: string;
        name: string;
        /** @enum {string} */
        decision: Open<"allow" | "deny" | "require_approval" | "audit">;
        priority: number;
        /** @enum {string} */
        outcome: Open<"decided" | "audited" | "not_matched" | "not_reached" | "disabled">;
        explanation: string;
    }[];
};

export type PoliciesBacktestRequest = {
    tenantId?: string;
    policy: {
        /** @default backtest */
        name?: string;
        /** @enum {string} */
        decision: "allow" | "deny" | "require_approval" | "audit";
        /** @default  */
        description?: string;
        /** @default {} */
        match?: {
            tools?: string[];
            agentTypes?: string[];
            instanceIds?: string[];
            skills?: string[];
            actions?: string[];
            paths?: string[];
            hosts?: string[];
            arguments?: ({
                path: string;
                /** @enum {string} */
                op: "eq" | "ne" | "contains";
                value: string | number | boolean | null;
            } | {
                path: string;
                /** @enum {string} */
                op: "in";
                value: (string | number | boolean | null)[];
            } | {
                path: string;
                /** @enum {string} */
                op: "gt" | "gte" | "lt" | "lte";
                value: number | string;
            } | {
                path: string;
                /** @enum {string} */
                op: "matches";
                value: string;
            })[];
            not?: {
                tools?: string[];
                agentTypes?: string[];
                instanceIds?: string[];
                skills?: string[];
                actions?: string[];
                paths?: string[];
                hosts?: string[];
                arguments?: ({
                    path: string;
                    /** @enum {string} */
                    op: "eq" | "ne" | "contains";
                    value: string | number | boolean | null;
                } | {
                    path: string;
                    /** @enum {string} */
                    op: "in";
                    value: (string | number | boolean | null)[];
                } | {
                    path: string;
                    /** @enum {string} */
                    op: "gt" | "gte" | "lt" | "lte";
                    value: number | string;
                } | {
                    path: string;
                    /** @enum {string} */
                    op: "matches";
                    value: string;
                })[];
            };
        };
        /** @default  */
        reason?: string;
        /** @default [] */
        approvers?: string[];
        /** @default {} */
        evaluator?: {
            approval?: {
                /** @default 1 */
                quorum?: number;
                /** @default 86400 */
                timeoutSeconds?: number;
                reminderSeconds?: number;
                escalateTo?: string[];
                /** @default true */
                allowSelf?: boolean;
                /**
                 * @default fail
                 * @enum {string}
                 */
                onReject?: "fail" | "tell_agent";
            };
            /** @constant */
            type: "cel";
            expression: string;
            /**
             * @default deny
             * @enum {string}
             */
            onError?: "deny" | "require_approval";
        } | {
            approval?: {
                /** @default 1 */
                quorum?: number;
                /** @default 86400 */
                timeoutSeconds?: number;
                reminderSeconds?: number;
                escalateTo?: string[];
                /** @default true */
                allowSelf?: boolean;
                /**
                 * @default fail
                 * @enum {string}
                 */
                onReject?: "fail" | "tell_agent";
            };
            /** @constant */
            type: "webhook";
            url: string;
            secret?: string | null;
            /** @default 2000 */
            timeoutMs?: number;
            /**
             * @default deny
             * @enum {string}
             */
            onError?: "deny" | "require_approval";
            secretSet?: boolean;
        } | {
            approval?: {
                /** @default 1 */
                quorum?: number;
                /** @default 86400 */
                timeoutSeconds?: number;
                reminderSeconds?: number;
                escalateTo?: string[];
                /** @default true */
                allowSelf?: boolean;
                /**
                 * @default fail
                 * @enum {string}
                 */
                onReject?: "fail" | "tell_agent";
            };
        };
        /** @default 100 */
        priority?: number;
        /** @default true */
        enabled?: boolean;
        endAt?: string | null;
        /** @default null */
        maxCalls?: number | null;
        /** @enum {string} */
        scope: "admission" | "dispatch" | "tool" | "plan" | "session";
    };
    /** Format: date-time */
    from?: string;
    /** Format: date-time */
    to?: string;
    /** @default 10000 */
    limit?: number;
};

export type PoliciesBacktestResponse = {
    /** @constant */
    ok: true;
    examined: number;
    matched: number;
    unknown: number;
    byDecision: {
        allow: number;
        deny: number;
        requireApproval: number;
        audit: number;
    };
    overMaxCalls: number;
    samples: {
        /** Format: date-time */
        at: string;
        action: string;
        /** @enum {string} */
        decision: Open<"allow" | "deny" | "require_approval" | "audit">;
        messageId?: string;
        requestId?: string;
        planId?: string;
        sessionId?: string;
        tool?: string;
        agentType?: string;
        instanceId?: string;
        arguments?: {
            [key: string]: unknown;
        };
        /** @constant */
        overMaxCalls?: true;
    }[];
    sampled: boolean;
};

export type PoliciesGetGuardsRequest = {
    tenantId?: string;
};

export type PoliciesGetGuardsResponse = {
    /** @constant */
    ok: true;
    guards: Guard[];
};

export type PoliciesUpdateGuardRequest = {
    /** @constant */
    guard: "path";
    tenantId?: string;
    enabled?: boolean;
    /** @enum {string} */
    decision?: "allow" | "require_approval" | "deny";
    config?: {
        allowedRoots?: string[];
    };
} | {
    /** @constant */
    guard: "egress";
    tenantId?: string;
    enabled?: boolean;
    /** @enum {string} */
    decision?: "allow" | "require_approval" | "deny";
    config?: {
        allowedHosts?: string[];
        deniedHosts?: string[];
        stages?: ("message" | "output" | "tool_arguments" | "tool_result")[];
    };
} | {
    /** @constant */
    guard: "secrets";
    tenantId?: string;
    enabled?: boolean;
    /** @enum {string} */
    decision?: "allow" | "require_approval" | "deny";
    config?: {
        detect?: ("credentials" | "payment_cards" | "bank_accounts" | "national_ids" | "email_addresses" | "phone_numbers")[];
        stages?: ("message" | "output" | "tool_arguments" | "tool_result")[];
    };
} | {
    /** @constant */
    guard: "prompt_injection";
    tenantId?: string;
    enabled?: boolean;
    /** @enum {string} */
    decision?: "allow" | "require_approval" | "deny";
    config?: {
        stages?: ("message" | "output" | "tool_arguments" | "tool_result")[];
    };
} | {
    /** @constant */
    guard: "limits";
    tenantId?: string;
    enabled?: boolean;
    /** @enum {string} */
    decision?: "allow" | "require_approval" | "deny";
    config?: {
        maxMessageBytes?: number;
        maxOutputBytes?: number;
        maxArgumentBytes?: number;
        maxResultBytes?: number;
        maxDepth?: number;
        maxHops?: number;
        maxRepeatedCalls?: number | null;
    };
};

export type PoliciesUpdateGuardResponse = {
    /** @constant */
    ok: true;
    guard: Guard;
};

export type PoliciesNewAlertRequest = {
    name: string;
    condition: {
        event: string;
        filters?: {
            [key: string]: (string | number | boolean | null) | (string | number | boolean | null)[];
        };
    };
    notifications: ({
        /** @constant */
        type: "webhook";
        config: {
            url: string;
            secret?: string | null;
            headers?: {
                [key: string]: string;
            } | null;
            /** @enum {number} */
            maxAttempts?: 3 | 4;
        };
        /** @default true */
        enabled?: boolean;
        channelId?: string;
        secretsSet?: string[];
        unreadable?: boolean;
        receiver?: unknown;
    } | {
        /** @constant */
        type: "slack";
        config: {
            webhookUrl?: string | null;
            botToken?: string | null;
            channelId?: string;
            signingSecret?: string | null;
            /** @enum {number} */
            maxAttempts?: 3 | 4;
        };
        /** @default true */
        enabled?: boolean;
        channelId?: string;
        secretsSet?: string[];
        unreadable?: boolean;
        receiver?: unknown;
    } | {
        /** @constant */
        type: "email";
        config: {
            recipients: string[];
            /** @enum {number} */
            maxAttempts?: 3 | 4;
        };
        /** @default true */
        enabled?: boolean;
        channelId?: string;
        secretsSet?: string[];
        unreadable?: boolean;
        receiver?: unknown;
    })[];
    /**
     * @default warning
     * @enum {string}
     */
    severity?: "info" | "warning" | "critical";
    /** @default 1 */
    threshold?: number;
    /** @default 60 */
    windowSeconds?: number;
    /** @default 0 */
    cooldownSeconds?: number;
    /** @default  */
    description?: string;
    /** @default true */
    enabled?: boolean;
    /** @default [] */
    approvers?: string[];
};

export type PoliciesNewAlertResponse = AlertRule;

export type PoliciesGetAlertsRequest = {
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
};

export type PoliciesGetAlertsResponse = {
    count: number;
    page: number;
    pageSize: number;
    totalPages: number;
    rules: AlertRule[];
};

export type PoliciesGetAlertByIdRequest = {
    ruleId: string;
};

export type PoliciesGetAlertByIdResponse = AlertRule;

export type PoliciesUpdateAlertRequest = {
    ruleId: string;
    name?: string;
    condition?: {
        event: string;
        filters?: {
            [key: string]: (string | number | boolean | null) | (string | number | boolean | null)[];
        };
    };
    notifications?: ({
        /** @constant */
        type: "webhook";
        config: {
            url: string;
            secret?: string | null;
            headers?: {
                [key: string]: string;
            } | null;
            /** @enum {number} */
            maxAttempts?: 3 | 4;
        };
        /** @default true */
        enabled?: boolean;
        channelId?: string;
        secretsSet?: string[];
        unreadable?: boolean;
        receiver?: unknown;
    } | {
        /** @constant */
        type: "slack";
        config: {
            webhookUrl?: string | null;
            botToken?: string | null;
            channelId?: string;
            signingSecret?: string | null;
            /** @enum {number} */
            maxAttempts?: 3 | 4;
        };
        /** @default true */
        enabled?: boolean;
        channelId?: string;
        secretsSet?: string[];
        unreadable?: boolean;
        receiver?: unknown;
    } | {
        /** @constant */
        type: "email";
        config: {
            recipients: string[];
            /** @enum {number} */
            maxAttempts?: 3 | 4;
        };
        /** @default true */
        enabled?: boolean;
        channelId?: string;
        secretsSet?: string[];
        unreadable?: boolean;
        receiver?: unknown;
    })[];
    /** @enum {string} */
    severity?: "info" | "warning" | "critical";
    threshold?: number;
    windowSeconds?: number;
    cooldownSeconds?: number;
    description?: string;
    enabled?: boolean;
    approvers?: string[];
};

export type PoliciesUpdateAlertResponse = AlertRule;

export type PoliciesDeleteAlertRequest = {
    ruleId: string;
};

export type PoliciesDeleteAlertResponse = {
    /** @constant */
    ok: true;
};

export type PoliciesTestAlertRequest = {
    ruleId: string;
};

export type PoliciesTestAlertResponse = {
    results: {
        type: string;
        ok: boolean;
        message: string;
    }[];
};

export type WebhooksGetDeliveriesRequest = {
    deliveryId?: string;
    ruleId?: string;
    taskId?: string;
    eventType?: string;
    success?: boolean;
    /** @enum {string} */
    status?: "pending" | "delivered" | "failed" | "dropped";
    /** Format: date-time */
    since?: string;
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
};

export type WebhooksGetDeliveriesResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    deliveries: Delivery[];
};

export type WebhooksRedeliverRequest = {
    deliveryId: string;
};

export type WebhooksRedeliverResponse = {
    /** @constant */
    ok: true;
    deliveryId: string;
    /** @enum {string} */
    status: Open<"pending" | "delivered" | "failed" | "dropped">;
};

export type SlackInteractionsRequest = {
    payload: string;
};

export type SlackInteractionsResponse = {
    /** @constant */
    ok: true;
};

export type TelemetryGetEventsRequest = {
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
    sessionId?: string;
    messageId?: string;
    instanceId?: string;
    category?: string;
    type?: string;
    source?: string;
    /** Format: date-time */
    from?: string;
    /** Format: date-time */
    to?: string;
};

export type TelemetryGetEventsResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    events: EventRecord[];
};

export type TelemetryStreamEventsRequest = {
    sessionId?: string;
    messageId?: string;
    instanceId?: string;
    category?: string;
    type?: string;
    source?: string;
    lastEventId?: string;
};

export type TelemetryStreamEventsItem = EventRecord;

export type TelemetryStreamEventsByQueryRequest = {
    sessionId?: string;
    messageId?: string;
    instanceId?: string;
    category?: string;
    type?: string;
    source?: string;
    lastEventId?: string;
};

export type TelemetryStreamEventsByQueryItem = EventRecord;

export type TelemetryGetTracesRequest = {
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
    traceId?: string;
    sessionId?: string;
    /** @enum {string} */
    status?: "running" | "ok" | "error" | "canceled";
    hasPlan?: boolean;
};

export type TelemetryGetTracesResponse = {
    /** @constant */
    ok: true;
    trace: {
        traceId: string;
        sessionId: string;
        tenantId: string;
        rootAgent: string | null;
        /** @enum {string} */
        status: Open<"running" | "ok" | "error" | "canceled">;
        /** Format: date-time */
        startedAt: string;
        endedAt: string | null;
        durationMs: number | null;
        spanCount: number;
        /** @constant */
        truncated?: true;
        spans: {
            spanId: string;
            parentSpanId: string | null;
            name: string;
            /** @enum {string} */
            kind: Open<"server" | "client" | "internal">;
            /** Format: date-time */
            start: string;
            end: string | null;
            /** @enum {string} */
            status: Open<"unset" | "ok" | "error">;
            attributes: {
                [key: string]: string | number | boolean;
            };
        }[];
    };
} | {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    traces: {
        traceId: string;
        sessionId: string;
        tenantId: string;
        rootAgent: string | null;
        /** @enum {string} */
        status: Open<"running" | "ok" | "error" | "canceled">;
        /** Format: date-time */
        startedAt: string;
        endedAt: string | null;
        durationMs: number | null;
        spanCount: number;
        /** @constant */
        truncated?: true;
    }[];
};

export type TelemetryGetUsageRequest = {
    /** @default false */
    summary?: boolean;
    /**
     * @default 7d
     * @enum {string}
     */
    range?: "24h" | "7d" | "30d";
    /**
     * @default agent_type
     * @enum {string}
     */
    groupBy?: "agent_type" | "model" | "instance_id" | "day" | "session" | "user" | "credential";
    /**
     * @default tokens
     * @enum {string}
     */
    sort?: "tokens" | "messages" | "dispatches" | "tool_calls" | "input_tokens" | "output_tokens" | "total_tokens" | "duration_ms" | "cost_usd" | "key";
    /**
     * @default desc
     * @enum {string}
     */
    order?: "asc" | "desc";
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
};

export type TelemetryGetUsageResponse = {
    /** @constant */
    ok: true;
    /** @enum {string} */
    range: Open<"24h" | "7d" | "30d">;
    totals: {
        messages: number;
        dispatches: number;
        toolCalls: number;
        inputTokens: number;
        outputTokens: number;
        totalTokens: number;
        durationMs: number;
        costUsd: number;
    };
    rows: UsageRow[];
    count: number;
    page: number;
    pageSize: number;
    totalPages: number;
};

export type TenantsCreateRequest = {
    name: string;
    defaultAgentType?: string | null;
    limits?: {
        messagesPerDay?: number | null;
        tokensPerDay?: number | null;
        costUsdPerMonth?: number | null;
    };
    credential?: {
        name: string;
        scopes: ("read" | "admin" | "full")[];
        agentTypes?: ("*" | string)[];
        /** Format: date-time */
        expiresAt?: string;
    };
};

export type TenantsCreateResponse = {
    /** @constant */
    ok: true;
    tenant: {
        tenantId: string;
        name: string;
        defaultAgentType: string | null;
        limits: {
            messagesPerDay: number | null;
            tokensPerDay: number | null;
            costUsdPerMonth: number | null;
        };
        /** Format: date-time */
        createdAt: string;
        deletedAt: string | null;
    };
    credential?: Credential;
    clientSecret?: string;
};

export type TenantsGetRequest = {
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
};

export type TenantsGetResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    tenants: {
        tenantId: string;
        name: string;
        defaultAgentType: string | null;
        limits: {
            messagesPerDay: number | null;
            tokensPerDay: number | null;
            costUsdPerMonth: number | null;
        };
        /** Format: date-time */
        createdAt: string;
        deletedAt: string | null;
    }[];
};

export type TenantsGetByIdRequest = {
    tenantId: string;
};

export type TenantsGetByIdResponse = {
    /** @constant */
    ok: true;
    tenant: {
        tenantId: string;
        name: string;
        defaultAgentType: string | null;
        limits: {
            messagesPerDay: number | null;
            tokensPerDay: number | null;
            costUsdPerMonth: number | null;
        };
        /** Format: date-time */
        createdAt: string;
        deletedAt: string | null;
    };
};

export type TenantsUpdateRequest = {
    name?: string;
    defaultAgentType?: string | null;
    limits?: {
        messagesPerDay?: number | null;
        tokensPerDay?: number | null;
        costUsdPerMonth?: number | null;
    };
    tenantId: string;
};

export type TenantsUpdateResponse = {
    /** @constant */
    ok: true;
    tenant: {
        tenantId: string;
        name: string;
        defaultAgentType: string | null;
        limits: {
            messagesPerDay: number | null;
            tokensPerDay: number | null;
            costUsdPerMonth: number | null;
        };
        /** Format: date-time */
        createdAt: string;
        deletedAt: string | null;
    };
};

export type TenantsDeleteRequest = {
    tenantId: string;
};

export type TenantsDeleteResponse = {
    /** @constant */
    ok: true;
    tenantId: string;
};

export type TenantsGetLimitsRequest = Record<string, never>;

export type TenantsGetLimitsResponse = {
    /** @constant */
    ok: true;
    limits: {
        messagesPerDay: number | null;
        tokensPerDay: number | null;
        costUsdPerMonth: number | null;
        perUser?: {
            messagesPerDay?: number | null;
            tokensPerDay?: number | null;
            costUsdPerMonth?: number | null;
        } | null;
        perCredential?: {
            messagesPerDay?: number | null;
            tokensPerDay?: number | null;
            costUsdPerMonth?: number | null;
        } | null;
        perAgentType?: {
            messagesPerDay?: number | null;
            tokensPerDay?: number | null;
            costUsdPerMonth?: number | null;
        } | null;
    };
    used: {
        messages: number;
        tokens: number;
        costUsd: number;
    };
    /** Format: date-time */
    dayEndsAt: string;
    /** Format: date-time */
    monthEndsAt: string;
};

export type TenantsSetLimitsRequest = {
    messagesPerDay?: number | null;
    tokensPerDay?: number | null;
    costUsdPerMonth?: number | null;
    perUser?: {
        messagesPerDay?: number | null;
        tokensPerDay?: number | null;
        costUsdPerMonth?: number | null;
    } | null;
    perCredential?: {
        messagesPerDay?: number | null;
        tokensPerDay?: number | null;
        costUsdPerMonth?: number | null;
    } | null;
    perAgentType?: {
        messagesPerDay?: number | null;
        tokensPerDay?: number | null;
        costUsdPerMonth?: number | null;
    } | null;
};

export type TenantsSetLimitsResponse = {
    /** @constant */
    ok: true;
    limits: {
        messagesPerDay: number | null;
        tokensPerDay: number | null;
        costUsdPerMonth: number | null;
        perUser?: {
            messagesPerDay?: number | null;
            tokensPerDay?: number | null;
            costUsdPerMonth?: number | null;
        } | null;
        perCredential?: {
            messagesPerDay?: number | null;
            tokensPerDay?: number | null;
            costUsdPerMonth?: number | null;
        } | null;
        perAgentType?: {
            messagesPerDay?: number | null;
            tokensPerDay?: number | null;
            costUsdPerMonth?: number | null;
        } | null;
    };
    used: {
        messages: number;
        tokens: number;
        costUsd: number;
    };
    /** Format: date-time */
    dayEndsAt: string;
    /** Format: date-time */
    monthEndsAt: string;
};

export type TenantsGetPricesRequest = Record<string, never>;

export type TenantsGetPricesResponse = {
    /** @constant */
    ok: true;
    prices: ModelPrice[];
};

export type TenantsSetPricesRequest = {
    model: string;
    inputPerMillion: number | null;
    outputPerMillion: number | null;
};

export type TenantsSetPricesResponse = {
    /** @constant */
    ok: true;
    prices: ModelPrice[];
};

export type AuditGetRequest = {
    auditId?: string;
    principal?: string;
    action?: string;
    target?: string;
    /** Format: date-time */
    from?: string;
    /** Format: date-time */
    to?: string;
    /**
     * @default newest
     * @enum {string}
     */
    sort?: "newest" | "oldest";
    /** @default 25 */
    pageSize?: number;
    cursor?: string;
    /**
     * @default json
     * @enum {string}
     */
    format?: "json" | "jsonl";
};

export type AuditGetResponse = {
    /** @constant */
    ok: true;
    entries: {
        auditId: string;
        /** Format: date-time */
        at: string;
        principal: {
            /** @enum {string} */
            type: Open<"credential" | "agent" | "person" | "callback" | "page" | "slack" | "system" | "schedule" | "operator" | "temporal">;
            id: string;
            name?: string;
        };
        action: string;
        target: {
            type: string;
            id: string;
            name?: string;
        };
        ip?: string;
        before?: {
            [key: string]: unknown;
        } | null;
        after?: {
            [key: string]: unknown;
        } | null;
        cursor?: string;
    }[];
    nextCursor?: string;
};

export type KnowledgeNewRequest = {
    namespace: string;
    displayName?: string;
    description?: string;
    /** @enum {string} */
    visibility?: "private" | "tenant";
    config?: {
        topK?: number;
        minScore?: number;
        /** @enum {string} */
        mode?: "hybrid" | "semantic" | "lexical";
        chunkTokens?: number;
        chunkOverlap?: number;
    };
    documents?: {
        sourceId?: string;
        content?: string;
        contentBase64?: string;
        url?: string;
        title?: string;
        filename?: string;
        contentType?: string;
        sourceType?: string;
        tags?: string[];
        metadata?: {
            [key: string]: unknown;
        };
    }[];
    idempotencyKey?: string;
    wait?: boolean;
};

export type KnowledgeNewResponse = {
    /** @constant */
    ok: true;
    knowledgeBase: KnowledgeBase;
    jobId?: string;
    /** @enum {string} */
    status?: Open<"processing" | "completed" | "failed">;
};

export type KnowledgeGetRequest = {
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
};

export type KnowledgeGetResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    knowledgeBases: KnowledgeBase[];
};

export type KnowledgeGetByIdRequest = {
    namespace: string;
};

export type KnowledgeGetByIdResponse = {
    /** @constant */
    ok: true;
    knowledgeBase: KnowledgeBase;
};

export type KnowledgeUpdateRequest = {
    namespace: string;
    displayName?: string;
    description?: string;
    /** @enum {string} */
    visibility?: "private" | "tenant";
    config?: {
        topK?: number;
        minScore?: number;
        /** @enum {string} */
        mode?: "hybrid" | "semantic" | "lexical";
        chunkTokens?: number;
        chunkOverlap?: number;
    };
};

export type KnowledgeUpdateResponse = {
    /** @constant */
    ok: true;
    knowledgeBase: KnowledgeBase;
    /** @constant */
    refreshRequired?: true;
};

export type KnowledgeDeleteRequest = {
    namespace: string;
};

export type KnowledgeDeleteResponse = {
    /** @constant */
    ok: true;
};

export type KnowledgeIngestRequest = {
    namespace: string;
    sourceId?: string;
    content?: string;
    contentBase64?: string;
    url?: string;
    title?: string;
    filename?: string;
    contentType?: string;
    sourceType?: string;
    tags?: string[];
    metadata?: {
        [key: string]: unknown;
    };
    documents?: {
        sourceId?: string;
        content?: string;
        contentBase64?: string;
        url?: string;
        title?: string;
        filename?: string;
        contentType?: string;
        sourceType?: string;
        tags?: string[];
        metadata?: {
            [key: string]: unknown;
        };
    }[];
    idempotencyKey?: string;
    wait?: boolean;
};

export type KnowledgeIngestResponse = {
    /** @constant */
    ok: true;
    jobId: string;
    /** @enum {string} */
    status: Open<"processing" | "completed" | "failed">;
    async: boolean;
    sources: {
        sourceId: string;
        /** @enum {string} */
        status: Open<"processing" | "completed" | "failed">;
        chunkCount: number;
        tags: string[];
        /** Format: date-time */
        createdAt: string;
        contentHash: string | null;
        /** @enum {string} */
        result?: Open<"created" | "updated" | "unchanged" | "failed">;
        error?: {
            code: string;
            message: string;
        };
    }[];
    chunksCreated?: number;
    sourceId?: string;
};

export type KnowledgeQueryRequest = {
    namespace?: string;
    namespaces?: string[];
    query: string;
    topK?: number;
    minScore?: number;
    /** @enum {string} */
    mode?: "hybrid" | "semantic" | "lexical";
    filters?: {
        tagsAny?: string[];
        tagsAll?: string[];
        sourceIds?: string[];
        metadata?: {
            [key: string]: unknown;
        };
    };
};

export type KnowledgeQueryResponse = {
    /** @constant */
    ok: true;
    results: SearchResult[];
    totalCandidates: number;
    /** @enum {string} */
    modeUsed: Open<"hybrid" | "semantic" | "lexical">;
    resultsOmitted?: number;
};

export type KnowledgeRefreshRequest = {
    namespace: string;
    sourceIds?: string[];
    force?: boolean;
};

export type KnowledgeRefreshResponse = {
    /** @constant */
    ok: true;
    jobId: string;
    /** @enum {string} */
    status: Open<"processing" | "completed" | "failed">;
};

export type KnowledgeGetStatsRequest = {
    namespace: string;
};

export type KnowledgeGetStatsResponse = {
    /** @constant */
    ok: true;
    stats: KnowledgeStats;
};

export type KnowledgeGetSourcesRequest = {
    namespace: string;
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
};

export type KnowledgeGetSourcesResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    sources: KnowledgeSource[];
};

export type KnowledgeDeleteSourceRequest = {
    namespace: string;
    sourceId: string;
};

export type KnowledgeDeleteSourceResponse = {
    /** @constant */
    ok: true;
};

export type KnowledgeGetJobsRequest = {
    namespace: string;
    /** @default 1 */
    page?: number;
    /** @default 25 */
    pageSize?: number;
};

export type KnowledgeGetJobsResponse = {
    /** @constant */
    ok: true;
    count: number;
    /** @constant */
    countEstimated?: true;
    page: number;
    pageSize: number;
    totalPages: number;
    jobs: {
        jobId: string;
        /** @enum {string} */
        status: Open<"processing" | "completed" | "failed">;
        context: {
            namespace: string;
            operation: string;
            sourceId?: string;
        };
        progress: {
            /** @enum {string} */
            phase: Open<"queued" | "working" | "done">;
            sourcesTotal: number;
            sourcesDone: number;
            sourcesFailed: number;
            chunksDone: number;
            percent: number;
        };
        result?: {
            created: number;
            updated: number;
            unchanged: number;
            failed: number;
            chunksCreated: number;
        };
        error?: {
            code: string;
            message: string;
        };
        /** Format: date-time */
        createdAt: string;
        /** Format: date-time */
        updatedAt: string;
    }[];
};

export type KnowledgeGetStatusRequest = {
    jobId: string;
};

export type KnowledgeGetStatusResponse = {
    /** @constant */
    ok: true;
    jobId: string;
    /** @enum {string} */
    status: Open<"processing" | "completed" | "failed">;
    context: {
        namespace: string;
        operation: string;
        sourceId?: string;
    };
    progress: {
        /** @enum {string} */
        phase: Open<"queued" | "working" | "done">;
        sourcesTotal: number;
        sourcesDone: number;
        sourcesFailed: number;
        chunksDone: number;
        percent: number;
    };
    result?: {
        created: number;
        updated: number;
        unchanged: number;
        failed: number;
        chunksCreated: number;
    };
    error?: {
        code: string;
        message: string;
    };
    /** Format: date-time */
    createdAt: string;
    /** Format: date-time */
    updatedAt: string;
    sources: {
        sourceId: string;
        /** @enum {string} */
        status: Open<"processing" | "completed" | "failed">;
        chunkCount: number;
        tags: string[];
        /** Format: date-time */
        createdAt: string;
        contentHash: string | null;
        /** @enum {string} */
        result?: Open<"created" | "updated" | "unchanged" | "failed">;
        error?: {
            code: string;
            message: string;
        };
    }[];
};

export type PlatformHealthRequest = {
    /** @constant */
    ready?: "full";
};

export type PlatformHealthResponse = {
    /** @enum {string} */
    status: Open<"ok" | "degraded" | "stopping">;
    version: string;
    checks: {
        /** @enum {string} */
        database: Open<"ok" | "down">;
        /** @enum {string} */
        temporal: Open<"ok" | "down">;
        /** @enum {string} */
        mesh: Open<"ok" | "down">;
        /** @enum {string} */
        redis?: Open<"ok" | "down">;
    };
};

export type PlatformAgentCardResponse = {
    /** @constant */
    protocolVersion: "0.3.0";
    name: string;
    description: string;
    version: string;
    supportedInterfaces: {
        url: string;
        /** @constant */
        protocolBinding: "JSONRPC";
        protocolVersion: string;
    }[];
    defaultInputModes: string[];
    defaultOutputModes: string[];
    skills: {
        id: string;
        name: string;
        description: string;
        tags: string[];
        examples?: string[];
        inputModes?: string[];
        outputModes?: string[];
    }[];
    provider?: {
        organization: string;
        url: string;
    };
    documentationUrl?: string;
    iconUrl?: string;
    url: string;
    /** @constant */
    preferredTransport: "JSONRPC";
    additionalInterfaces: {
        url: string;
        /** @constant */
        transport: "JSONRPC";
    }[];
    capabilities: {
        streaming: boolean;
        pushNotifications: boolean;
        stateTransitionHistory: boolean;
    };
    securitySchemes: {
        [key: string]: {
            /** @constant */
            type: "http";
            scheme: string;
            bearerFormat: string;
            description: string;
        };
    };
    security: {
        [key: string]: string[];
    }[];
    supportsAuthenticatedExtendedCard: boolean;
} | {
    name: string;
    description: string;
    version: string;
    supportedInterfaces: {
        url: string;
        /** @constant */
        protocolBinding: "JSONRPC";
        protocolVersion: string;
    }[];
    defaultInputModes: string[];
    defaultOutputModes: string[];
    skills: {
        id: string;
        name: string;
        description: string;
        tags: string[];
        examples?: string[];
        inputModes?: string[];
        outputModes?: string[];
    }[];
    provider?: {
        organization: string;
        url: string;
    };
    documentationUrl?: string;
    iconUrl?: string;
    capabilities: {
        streaming: boolean;
        pushNotifications: boolean;
        extendedAgentCard: boolean;
    };
    securitySchemes: {
        [key: string]: {
            httpAuthSecurityScheme: {
                scheme: string;
                bearerFormat: string;
                description: string;
            };
        };
    };
    securityRequirements: {
        schemes: {
            [key: string]: {
                list: string[];
            };
        };
    }[];
};

export type PlatformAgentTypeCardResponse = {
    /** @constant */
    protocolVersion: "0.3.0";
    name: string;
    description: string;
    version: string;
    supportedInterfaces: {
        url: string;
        /** @constant */
        protocolBinding: "JSONRPC";
        protocolVersion: string;
    }[];
    defaultInputModes: string[];
    defaultOutputModes: string[];
    skills: {
        id: string;
        name: string;
        description: string;
        tags: string[];
        examples?: string[];
        inputModes?: string[];
        outputModes?: string[];
    }[];
    provider?: {
        organization: string;
        url: string;
    };
    documentationUrl?: string;
    iconUrl?: string;
    url: string;
    /** @constant */
    preferredTransport: "JSONRPC";
    additionalInterfaces: {
        url: string;
        /** @constant */
        transport: "JSONRPC";
    }[];
    capabilities: {
        streaming: boolean;
        pushNotifications: boolean;
        stateTransitionHistory: boolean;
    };
    securitySchemes: {
        [key: string]: {
            /** @constant */
            type: "http";
            scheme: string;
            bearerFormat: string;
            description: string;
        };
    };
    security: {
        [key: string]: string[];
    }[];
    supportsAuthenticatedExtendedCard: boolean;
} | {
    name: string;
    description: string;
    version: string;
    supportedInterfaces: {
        url: string;
        /** @constant */
        protocolBinding: "JSONRPC";
        protocolVersion: string;
    }[];
    defaultInputModes: string[];
    defaultOutputModes: string[];
    skills: {
        id: string;
        name: string;
        description: string;
        tags: string[];
        examples?: string[];
        inputModes?: string[];
        outputModes?: string[];
    }[];
    provider?: {
        organization: string;
        url: string;
    };
    documentationUrl?: string;
    iconUrl?: string;
    capabilities: {
        streaming: boolean;
        pushNotifications: boolean;
        extendedAgentCard: boolean;
    };
    securitySchemes: {
        [key: string]: {
            httpAuthSecurityScheme: {
                scheme: string;
                bearerFormat: string;
                description: string;
            };
        };
    };
    securityRequirements: {
        schemes: {
            [key: string]: {
                list: string[];
            };
        };
    }[];
};

export type PlatformGetHealthRequest = Record<string, never>;

export type PlatformGetHealthResponse = {
    /** @constant */
    ok: true;
    /** @enum {string} */
    status: Open<"ok" | "degraded" | "stopping">;
    version: string;
    checks: {
        /** @enum {string} */
        database: Open<"ok" | "down">;
        /** @enum {string} */
        temporal: Open<"ok" | "down">;
        /** @enum {string} */
        mesh: Open<"ok" | "down">;
        /** @enum {string} */
        redis?: Open<"ok" | "down">;
    };
    nodes: {
        meshId: string;
        /** Format: date-time */
        startedAt: string;
        /** Format: date-time */
        renewedAt: string;
        draining: boolean;
        agents: number;
    }[];
};

export type PlatformOpenapiResponse = {
    [key: string]: unknown;
};
