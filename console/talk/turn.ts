import type { StreamEvent, TaskState, TaskStatus } from '../../contracts/a2a/a2a.js';
import type { Artifact, Part } from '../../contracts/a2a/parts.js';

/** What a stream has said of a message so far. */
export interface Live {
  messageId: string;
  sessionId: string;
  state: TaskState;
  /** What the agent says that it does. */
  status: string;
  artifacts: Artifact[];
  /** The stream has said all that it says: the message is over, or a person is asked. */
  final: boolean;
}

const textOf = ({ message }: TaskStatus): string =>
  (message?.parts ?? []).flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n');

/** Chunks of a text are one text. */
function joined(parts: readonly Part[], more: readonly Part[]): Part[] {
  const all = [...parts];
  for (const part of more) {
    const last = all.at(-1);
    if (last?.kind === 'text' && part.kind === 'text') all[all.length - 1] = { ...last, text: last.text + part.text };
    else all.push(part);
  }
  return all;
}

function withArtifact(artifacts: readonly Artifact[], artifact: Artifact, append: boolean): Artifact[] {
  const before = artifacts.find(({ artifactId }) => artifactId === artifact.artifactId);
  if (!before) return [...artifacts, artifact];
  const parts = append ? joined(before.parts, artifact.parts) : artifact.parts;
  return artifacts.map((one) => (one === before ? { ...before, ...artifact, parts } : one));
}

/** What is known of a message after one more event of its stream. A stream begins with the task, which replaces everything. */
export function after(live: Live | undefined, event: StreamEvent): Live | undefined {
  if (event.kind === 'task') {
    const { id: messageId, contextId: sessionId, status, artifacts = [] } = event;
    return { messageId, sessionId, state: status.state, status: textOf(status), artifacts, final: false };
  }
  if (!live) return undefined;
  if (event.kind === 'artifact-update')
    return { ...live, artifacts: withArtifact(live.artifacts, event.artifact, event.append === true) };
  // Another agent begins the answer anew, so that what the one before said does not count.
  const isNew = event.metadata?.restarted === true;
  const { status, final } = event;
  return {
    ...live,
    state: status.state,
    status: textOf(status) || (final ? '' : live.status),
    artifacts: isNew ? [] : live.artifacts,
    final,
  };
}

/** What to do about an error, where its text does not say it. */
const REMEDIES: Record<string, string> = {
  TARGET_UNAVAILABLE: 'Start an agent of this type, or choose another agent. Fleet shows who is online.',
  TARGET_REQUIRED: 'Choose an agent above.',
  HANDLER_ERROR: 'The log of the agent has the stack. Send again once it is mended.',
  INVALID_DISPATCH: 'The agent has no handler for this message, or its data does not fit. Its log says which.',
  AGENT_DISCONNECTED: 'The agent may have done some of the work. Look, then send again.',
  DEADLINE_EXCEEDED: 'The agent took too long. Its log says with what; its deadline is deadline_ms.',
  POLICY_DENIED: 'A policy forbids it. Its rules say what is allowed.',
  GUARD_DENIED: 'A guard stopped it. Leave out what it found, and send again.',
  APPROVAL_REJECTED: 'Somebody rejected it. The message page has their comment.',
  APPROVAL_EXPIRED: 'Nobody decided in time. Send it again, and tell its approvers.',
  SESSION_CLOSED: 'This conversation has ended. Start a new one.',
  NOT_FOUND: 'This conversation is not here. Start a new one.',
  RATE_LIMITED: 'Wait a moment, and send again.',
  QUOTA_EXCEEDED: 'The quota begins anew at the time that the text names.',
  AWAY: 'Your text is kept. Send it again once the platform answers.',
  unauthorized: 'Sign in again, and send again.',
  INTERNAL: 'The log of the platform has the cause. Send again.',
};

/** What to do about an error of a message or of a call. */
export const remedyOf = (code: string): string => REMEDIES[code] ?? 'The message page has its timeline.';
