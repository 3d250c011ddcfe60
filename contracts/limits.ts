/** Limits and defaults of the platform. */
export const LIMITS = {
  bodyBytes: 1024 * 1024,
  jsonDepth: 32,
  /** Values in the JSON of a body that is larger than `bodyBytes`. */
  largeBodyValues: 200_000,
  /** Characters of a string from which such a body counts it as a long text. */
  longTextChars: 4 * 1024,
  /** Characters of the JSON of such a body without its long texts. */
  largeBodyRestChars: 4 * 1024 * 1024,
  messagePartsBytes: 256 * 1024,
  frameBytes: 1024 * 1024,
  cardBytes: 64 * 1024,
  skillsBytes: 64 * 1024,
  toolsBytes: 64 * 1024,
  metadataBytes: 16 * 1024,
  /** Of a budget, and of a price for a million tokens. */
  costUsdMax: 1_000_000,
  modelPricesPerTenant: 1_000,
  /** Models of which the usage of one message tells apart what they used. */
  messageModelsMax: 16,
  /** Requests that one call of /requests/resolve_many decides, and for how long it does. */
  resolvedTogetherMax: 200,
  resolveManyMs: 20_000,
  pageSizeDefault: 25,
  pageSizeMax: 100,
  taskPageSizeDefault: 50,
  /** The highest number of rows that a list counts; beyond it `count` is an estimate. */
  countExactMax: 10_000,
  /** Stored content of messages on one page of a list. */
  pageContentBytes: 4 * 1024 * 1024,
  /** Content of a message that a page always has room for. */
  smallContentBytes: 4 * 1024,
  /** Length of an access token in a `reauth` frame; a handshake carries no longer one. */
  tokenChars: 16_384,
  tokenLifetimeSecondsDefault: 86_400,
  tokenLifetimeSecondsMin: 60,
  tokenLifetimeSecondsMax: 604_800,
  /** Of a token that is limited to a user, a session or agent types. */
  limitedTokenSecondsDefault: 3_600,
  limitedTokenSecondsMax: 86_400,
  maxConcurrentSessionsDefault: 10,
  idleTimeoutSecondsDefault: 1_800,
  idleTimeoutSecondsMax: 30 * 86_400,
  deadlineMsDefault: 600_000,
  deadlineMsMax: 86_400_000,
  heartbeatIntervalMs: 30_000,
  pingIntervalMs: 30_000,
  missedPingsMax: 3,
  helloTimeoutMs: 10_000,
  closeGraceSecondsDefault: 30,
  /** To one connected agent; to one hosted agent from each node. */
  dispatchesInFlightPerConnection: 256,
  /** A tenant alone gets half of them: its default bound, and what it is lent beyond that (messages/dispatch/lent-places.ts). */
  dispatchesInFlightPerNode: 4_096,
  bufferedBytesSoft: 256 * 1024,
  bufferedBytesHard: 1024 * 1024,
  blockedMsMax: 10_000,
  /** Sent chunks that an agent keeps for a resume: what a model writes in the half minute after which a silent connection is given up. */
  chunksKeptPerDispatch: 4_096,
  chunksBufferedPerDispatch: 256,
  chunkBytesBufferedPerDispatch: 1024 * 1024,
  chunksAtOncePerDispatch: 20_000,
  chunksPerSecondPerDispatch: 2_000,
  consecutiveFailuresUnhealthy: 3,
  /** The highest number of sessions that an agent may report. */
  reportedSessionsMax: 1_000_000,
  heartbeatStaleMs: 90_000,
  agentReapMs: 600_000,
  hostedTokenSeconds: 60,
  /** Of one tenant, and of all, in each process with the API. */
  eventStreamsPerTenant: 100,
  eventStreamsPerNode: 1_000,
  /** JSON Lines that are open at once: of one tenant, and of all, in each process with the API. */
  exportsPerTenant: 10,
  exportsPerNode: 100,
  /** With the tokens of one end user together, or with another limited token. */
  eventStreamsPerLimitedToken: 8,
  toolArgumentsBytes: 256 * 1024,
  toolResultBytes: 512 * 1024,
  toolDeadlineMsDefault: 60_000,
  toolCallDepthMax: 8,
  toolCallsInFlightPerCaller: 64,
  pendingToolCallsPerAgent: 64,
  toolCallsInFlightPerNode: 4_096,
  /** Agents that a message came through, each of which sent it on (also in accept_messages.sql). */
  messageHopsMax: 16,
  planSteps: 200,
  planParallelMax: 50,
  planStepAttemptsMax: 10,
  planStepSecondsMax: 7 * 86_400,
  /** Plans of a tenant that are proposed or running. */
  openPlansPerTenant: 1_000,
  /** Messages of a trace whose spans are shown, and spans that it has at most. */
  messagesPerTrace: 500,
  spansPerTrace: 10_000,
  /** Spans of a message in its trace, of each kind of which there may be any number: tool calls and streams, decisions, requests, dispatches. */
  spansPerKind: 1_000,
  /** Tool calls that wait for a human. */
  heldToolCallsPerCaller: 256,
  heldToolCallsPerNode: 4_096,
  policiesPerTenant: 2_000,
  policyMatchBytes: 16 * 1024,
  alertRulesPerTenant: 500,
  channelsPerRule: 10,
  channelHeaders: 20,
  /** Recipients of emails, over all channels of a rule: each gets a delivery of their own. */
  ruleRecipients: 50,
  ruleFilters: 20,
  /** Credentials that change what an alert rule sends. */
  ruleWriters: 100,
  /** Events that a rule counts at most. */
  alertThresholdMax: 10_000,
  /** The body of a request that takes in documents. */
  knowledgeBodyBytes: 32 * 1024 * 1024,
  knowledgeDocumentBytes: 10 * 1024 * 1024,
  knowledgeCallBytes: 20 * 1024 * 1024,
  /** Inline text that is taken in while its caller waits. */
  knowledgeInlineBytes: 256 * 1024,
  knowledgeDocumentsPerCall: 100,
  knowledgeRefreshSources: 100,
  /** Jobs of one tenant that are not over. */
  knowledgeJobsPerTenant: 50,
  knowledgeBasesPerTenant: 1_000,
  knowledgeTags: 50,
  knowledgeNamespacesPerQuery: 20,
  knowledgeQueryChars: 4_000,
  knowledgeResultsMax: 50,
} as const;
