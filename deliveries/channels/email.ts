import { createTransport, type SendMailOptions } from 'nodemailer';
import type { InputRequest } from '../../contracts/api/messages.js';
import { OutboundError } from '../../http/outbound.js';
import { ATTEMPT_TIMEOUT_MS, type Attempted, type AttemptOutcome, type AttemptResult } from '../attempts.js';
import type { Envelope } from '../envelope.js';
import type { Channel } from './channel-store.js';
import type { EmailSettings } from './clients.js';

/** A value on lines that are indented from the second one on: none of them can pass for a line of the platform. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.replace(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/g, '\n    ');
}

/** Header values end at a line break: a rule's name must not add headers. */
const oneLine = (text: string): string => text.replace(/[\r\n]+/g, ' ').slice(0, 200);

/** A time as people read it: a mail has no zone of its reader. */
const timeText = (at: string): string => `${new Date(at).toUTCString().slice(0, -7)} UTC`;

/** What a subject asks for, and where the request is answered. */
const ASKS: Record<InputRequest['kind'], [subject: string, link: string]> = {
  approval: ['Your approval is needed', 'Read all of it, and approve or reject it:'],
  confirmation: ['Please confirm', 'Read all of it, and confirm or decline it:'],
  form: ['Please fill in', 'The form:'],
};

/** Characters of an argument that a mail shows: arguments may be long, and nobody decides in the mail. */
const ARGUMENT_CHARS = 500;

function argumentOf(value: unknown): string {
  const text = shown(value);
  if (text.length <= ARGUMENT_CHARS) return text;
  return `${text.slice(0, ARGUMENT_CHARS).toWellFormed()}... (all of it on the page)`;
}

/** What a request asks, as far as a mail needs to say it: the page behind the link has all of it. */
function requestLines({ title, prompt, tool, arguments: given, executor, expires_at }: InputRequest): string[] {
  const who = executor?.type === 'agent' ? `agents of the type ${executor.id}` : 'the platform';
  const members = Object.entries(given ?? {}).map(([name, value]) => `    ${shown(name)}: ${argumentOf(value)}`);
  return [
    ...[shown(title), ''],
    ...(prompt !== '' && prompt !== title ? [shown(prompt), ''] : []),
    ...(tool === undefined ? [] : [`Tool: ${shown(tool)}`, `Carried out by: ${shown(who)}`]),
    ...(members.length > 0 ? ['With:', ...members] : []),
    ...[`Answer until: ${timeText(expires_at)}`, ''],
  ];
}

function requestText({ delivery_id, rule_name, event_type, page_url }: Envelope, request: InputRequest): string {
  return [
    ...requestLines(request),
    ASKS[request.kind][1],
    page_url,
    '',
    'The link is for you alone and works once. Whoever has it can decide: do not pass it on.',
    '',
    `Sent by the alert rule ${shown(rule_name)} (${event_type}, delivery ${delivery_id}).`,
  ].join('\n');
}

function alertText({ event, ...envelope }: Envelope): string {
  const { rule_name, severity, event_type, timestamp, session_id, delivery_id, resolve_url, test } = envelope;
  const facts = { event: event_type, severity, time: timestamp, ...(session_id && { session: session_id }) };
  const lines = Object.entries({ ...facts, ...event }).map(([name, value]) => `${name}: ${shown(value)}`);
  const head = test ? ['A test notification: nothing has happened.', ''] : [];
  const answer = resolve_url ? ['', 'To answer, with an access token:', `POST ${resolve_url}`] : [];
  return [...head, shown(rule_name), '', ...lines, ...answer, '', `delivery: ${delivery_id}`].join('\n');
}

/** Subject and text of a mail: what asks somebody says so in words that need no knowledge of the platform. */
function contentOf(envelope: Envelope): { subject: string; text: string } {
  const { input_request: request, page_url, severity, rule_name, event, test } = envelope;
  if (request && page_url !== undefined) {
    const reminder = event.reminder === undefined ? '' : 'Reminder: ';
    const subject = oneLine(`${reminder}${ASKS[request.kind][0]}: ${request.title}`);
    return { subject, text: requestText(envelope, request) };
  }
  const title = typeof event.title === 'string' ? event.title : envelope.event_type;
  return {
    subject: oneLine(`${test ? '[test] ' : ''}[${severity}] ${rule_name}: ${title}`),
    text: alertText(envelope),
  };
}

/** An envelope as an email. A repeat has the same Message-ID, by which mail systems find duplicates. */
function emailOf(envelope: Envelope, recipients: string[], from: string): SendMailOptions {
  const { delivery_id } = envelope;
  return {
    from,
    to: recipients,
    ...contentOf(envelope),
    messageId: `<${delivery_id}@${from.split('@').at(-1)?.replace(/>.*$/, '') || 'localhost'}>`,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Delivery-Id': delivery_id },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

/**
 * What the reply of a mail server means: 5xx is final, 4xx and a broken connection may pass (RFC 5321, 4.2.1). Where a recipient may be accepted
 * later, all get the mail again, under its Message-ID.
 */
function smtpOutcome({ status_code, error }: AttemptResult): AttemptOutcome {
  if (error === null) return 'accepted';
  return error === 'SMTP_NOT_CONFIGURED' || (status_code ?? 0) >= 500 ? 'refused' : 'unavailable';
}

/** The reply to the recipients that were refused beside others that were accepted: one that may pass before one that is final. */
function refusalOf(rejected: readonly { responseCode?: number | undefined }[] = []): number | null {
  const codes = rejected.map(({ responseCode = 550 }) => responseCode);
  return codes.length > 0 ? Math.min(...codes) : null;
}

/**
 * Sends a delivery to all recipients of an email channel. Errors of the server are part of the result.
 * @throws OutboundError ABORTED when the signal aborts; the attempt does not count
 */
export async function attemptEmail(
  { smtpUrl, from, timeoutMs = ATTEMPT_TIMEOUT_MS }: EmailSettings,
  { config }: Pick<Channel, 'config'>,
  body: Buffer,
  signal: AbortSignal,
): Promise<Attempted> {
  const startedAt = performance.now();
  const attempted = (status_code: number | null, error: string | null): Attempted => {
    const result = { status_code, error, duration_ms: Math.round(performance.now() - startedAt) };
    return { result, outcome: smtpOutcome(result) };
  };
  if (smtpUrl === undefined) return attempted(null, 'SMTP_NOT_CONFIGURED');
  // The timeouts of the transport are for one command each: a server that answers every one just in time would never reach them.
  const cut = AbortSignal.timeout(timeoutMs);
  const timeouts = { connectionTimeout: timeoutMs, dnsTimeout: timeoutMs };
  const transport = createTransport({ url: smtpUrl, ...timeouts });
  try {
    const mail = emailOf(JSON.parse(body.toString()), config.recipients ?? [], from);
    const sent = await transport.sendMail({ ...mail, signal: AbortSignal.any([signal, cut]) });
    const refusal = refusalOf(sent.rejectedErrors);
    if (refusal !== null) return attempted(refusal, 'RECIPIENT_REFUSED');
    return attempted(Number(/^\d{3}/.exec(sent.response)?.[0] ?? 250), null);
  } catch (error) {
    if (signal.aborted) throw new OutboundError('ABORTED', { cause: error });
    const { responseCode, code } = error as { responseCode?: number; code?: string };
    return attempted(responseCode ?? null, code === 'ETIMEDOUT' || cut.aborted ? 'TIMEOUT' : 'SMTP_ERROR');
  } finally {
    transport.close();
  }
}
