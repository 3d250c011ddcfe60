/** What keeps an agent from its work, with what to do about it. */
export class AgentError extends Error {
  /** `UNREACHABLE`, `UNTRUSTED_CERTIFICATE`, …, or the platform's own code, for example `RATE_LIMITED`. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentError';
    this.code = code;
  }
}

/** The agent stopped for good: refused or deregistered by the platform, or replaced by another process with its `instance_id`. */
export class AgentStoppedError extends AgentError {
  /** @param code the platform's, for example `REPLACED`, `DEREGISTERED`, `forbidden` or `DEPLOYMENT_MODE_MISMATCH` */
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.name = 'AgentStoppedError';
  }
}
