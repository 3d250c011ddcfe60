import { text as readAll } from 'node:stream/consumers';
import type { StreamEvent } from '../../contracts/a2a/a2a.js';
import type { MessageRecord } from '../../contracts/api/messages.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { asksPerson } from '../../contracts/message-states.js';
import { visible } from '../../contracts/visible-text.js';
import { ApiError, TaskFailedError, textStream } from '../../sdk/index.js';
import type { CommandInput, Shown } from '../command.js';
import { read, type Session } from './connection.js';
import { askPerson } from './questions.js';

/** Exit codes of `send` by how the message stands; 0 for one that is completed. */
const EXIT_CODES: Partial<Record<MessageRecord['state'], number>> = { completed: 0, 'input-required': 3, canceled: 4 };

async function messageOf(session: Session, message_id: string): Promise<MessageRecord> {
  return (await read(session, OPERATIONS.getMessage, { message_id })).message;
}

/** Asks at the terminal until an answer is taken. @returns false where nobody answers, or somebody else has */
async function answered(session: Session, message_id: string): Promise<boolean> {
  const { client, terminal } = session;
  for (;;) {
    const { state, input_request: request } = await messageOf(session, message_id);
    if (!asksPerson(state) || !request) return !asksPerson(state);
    const resolution = await askPerson(terminal, request);
    if (resolution === null) return false;
    try {
      await client.messages.resolve(message_id, { requestId: request.request_id, resolution });
      return true;
    } catch (error) {
      // A form that does not fit, an answer that came too late: the message says how it stands.
      if (!(error instanceof ApiError) || ![400, 409].includes(error.status)) throw error;
      terminal.note(`${terminal.paint('red', error.message)}\n`);
    }
  }
}

function idOf(event: StreamEvent): string {
  return event.kind === 'task' ? event.id : event.taskId;
}

function isQuestion(event: StreamEvent): boolean {
  return event.kind !== 'artifact-update' && asksPerson(event.status.state);
}

/** The updates of a message over its questions, which are answered at the terminal. */
async function* followed(session: Session, first: AsyncIterable<StreamEvent>, seen: (id: string) => void) {
  for (let events = first; ; ) {
    let question = '';
    for await (const event of events) {
      seen(idOf(event));
      if (isQuestion(event)) question = idOf(event);
      else yield event;
    }
    if (question === '' || !(await answered(session, question))) return;
    events = session.client.tasks.resubscribe(question);
  }
}

/** Sends a message, shows the answer as it comes, and asks at the terminal what the agent or a policy asks. */
export async function send(session: Session, { argument, second, options }: CommandInput): Promise<Shown> {
  const { client, terminal, json } = session;
  const text = second === '-' ? await readAll(process.stdin) : second;
  const stream = client.stream(text, {
    targetAgent: argument,
    ...(options.session !== undefined && { contextId: options.session }),
  });
  let message_id = '';
  try {
    const events = followed(session, stream, (id) => {
      message_id = id;
    });
    for await (const piece of textStream(events)) if (!json) terminal.write(visible(piece));
  } catch (error) {
    if (!(error instanceof TaskFailedError)) throw error; // its message says why
  }
  const message = await messageOf(session, message_id);
  if (!json && message.assistant_output !== '') terminal.write('\n');
  return { json: message, text: '', note: outcomeOf(session, message), exitCode: EXIT_CODES[message.state] ?? 1 };
}

/** What is said beside an answer; nothing about a message that is completed. */
function outcomeOf({ terminal }: Session, { state, message_id, error, input_request }: MessageRecord): string {
  const why = `\`fleet why ${message_id}\` says more.`;
  if (state === 'completed') return '';
  if (asksPerson(state))
    return `${terminal.paint('yellow', `It waits for a person: ${input_request?.title ?? ''}`)}\n\`fleet resolve ${message_id}\` answers; ${why}`;
  const text = error ? `${error.code}: ${error.message}` : `The message is ${state}.`;
  return `${terminal.paint('red', text)}\n${why}`;
}
