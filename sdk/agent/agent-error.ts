/** An error that keeps an agent from working. The message says what to do about it. */
export class AgentError extends Error {
  /** `UNREACHABLE`, `UNTRUSTED_CERTIFICATE`, …, or the platform's code, for example `RATE_LIMITED`. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentError';
    this.code = code;
  }
}

/** The agent stopped permanently: the platform refused or deregistered it, or another process with the same `instance_id` replaced it. */
export class AgentStoppedError extends AgentError {
  /** @param code the platform's code, for example `REPLACED`, `DEREGISTERED`, `forbidden` or `DEPLOYMENT_MODE_MISMATCH` */
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.name = 'AgentStoppedError';
  }
}
