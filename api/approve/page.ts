import type { InputRequest } from '../../contracts/api/messages.js';
import type { LinkedRequest } from '../../messages/input/by-link.js';
import { FIELD_PREFIX, type FormField, formFields } from './form-fields.js';
import { Html, html } from './html.js';
import { STYLE } from './style.js';

/** Characters of the message, and of an agent's output, that the page shows. */
const TEXT_MAX = 4_000;
const OUTPUT_MAX = 100_000;

function pageOf(title: string, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${new Html(`<style>${STYLE}</style>`)}
</head>
<body><main>${content}</main></body>
</html>
`.markup;
}

/** A time as people read it; in UTC, because the page has no script that knows the reader's zone. */
function time(at: string): Html {
  return html`<time datetime="${at}">${at.slice(0, 16).replace('T', ' ')} UTC</time>`;
}

const shortened = (text: string): string => (text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} …` : text);

/** All that would be delivered: texts as they are, everything else as JSON. */
function outputOf({ artifacts, status_message, input_request }: NonNullable<LinkedRequest['output']>): string {
  const parts = [...artifacts.flatMap((artifact) => artifact.parts), ...(status_message?.parts ?? [])];
  const texts = parts.map((part) =>
    part.kind === 'text' && !part.metadata ? part.text : JSON.stringify(part, null, 2),
  );
  const named = artifacts.map(({ artifactId: _, parts: __, ...about }) => about);
  const about = [...named, input_request, status_message?.metadata].filter((one) => one && Object.keys(one).length > 0);
  const all = [...texts, ...about.map((one) => JSON.stringify(one, null, 2))].join('\n\n');
  const rest = `\n… (${all.length} characters; /messages/get_held_output has all of it)`;
  return all.length > OUTPUT_MAX ? all.slice(0, OUTPUT_MAX) + rest : all;
}

function fact(name: string, value: Html | string | null | undefined): Html | null {
  return value ? html`<dt>${name}</dt><dd>${value}</dd>` : null;
}

/** What was decided so far, where several principals must approve. */
function votes({ quorum, approvals }: InputRequest): string | null {
  if (quorum < 2) return null;
  const given = approvals.filter(({ resolution }) => resolution !== 'rejected').length;
  return `${given} of ${quorum} needed`;
}

/** Arguments, output and the text of the message are shown only while the link can decide: it lies in a mailbox long after that. */
function question({ state, request, output, asked_by, message }: LinkedRequest): Html {
  const { title, prompt, tool } = request;
  const isOpen = state === 'open';
  return html`
<p>A decision is asked of you by ${asked_by}.</p>
<h1>${title}</h1>
${prompt !== title && html`<p class="prompt">${prompt}</p>`}
<dl>
${fact('Tool', tool)}
${fact('Agent', message.agent_type)}
${fact('Sent by', message.sent_by)}
${fact('Asked', time(request.requested_at))}
${fact('Answer until', time(request.expires_at))}
${fact('Approvals', votes(request))}
</dl>
${isOpen && request.arguments && html`<p>The arguments that you decide about:</p><pre>${JSON.stringify(request.arguments, null, 2)}</pre>`}
${isOpen && output && html`<p>The output that you decide about:</p><pre>${outputOf(output)}</pre>`}
${isOpen && message.user_input !== '' && html`<p>The message that waits for it:</p><p class="quote">${shortened(message.user_input)}</p>`}`;
}

function input({ name, label, description, input: kind, required, options }: FormField, posted: URLSearchParams): Html {
  const id = `${FIELD_PREFIX}${name}`;
  const value = posted.get(id) ?? '';
  const must = required && new Html(' required');
  const text = html`${label}${required ? ' *' : ''}${description && html`<small>${description}</small>`}`;
  if (kind === 'checkbox')
    return html`<label><input type="checkbox" name="${id}" value="true"${value === 'true' && new Html(' checked')}>${text}</label>`;
  if (kind === 'select') {
    const choices = options.map((option) => {
      const shown = option.startsWith('"') ? JSON.parse(option) : option;
      return html`<option value="${option}"${option === value && new Html(' selected')}>${shown}</option>`;
    });
    return html`<label>${text}<select name="${id}"${must}><option value="">–</option>${choices}</select></label>`;
  }
  if (kind === 'list')
    return html`<label>${text}<small>One value a line.</small><textarea name="${id}" rows="3"${must}>${value}</textarea></label>`;
  const type = kind === 'number' ? new Html(' type="number" step="any"') : new Html(' type="text"');
  return html`<label>${text}<input${type} name="${id}" value="${value}"${must}></label>`;
}

/** The word that each button posts, and what it says. */
const BUTTONS: Record<InputRequest['kind'], [yes: [string, string], no: [string, string]]> = {
  approval: [
    ['approved', 'Approve'],
    ['rejected', 'Reject'],
  ],
  confirmation: [
    ['confirmed', 'Confirm'],
    ['declined', 'Decline'],
  ],
  form: [
    ['submitted', 'Submit'],
    ['declined', 'Decline'],
  ],
};

function decisionForm({ request, version }: LinkedRequest, posted: URLSearchParams): Html {
  const [[yes, yesText], [no, noText]] = BUTTONS[request.kind];
  const fields = request.kind === 'form' ? formFields(request).map((field) => input(field, posted)) : [];
  return html`
<form method="post">
<input type="hidden" name="version" value="${version}">
${fields}
<label>Comment<small>Optional. It is kept with your decision.</small><textarea name="comment" rows="2" maxlength="4096">${posted.get('comment') ?? ''}</textarea></label>
<div class="buttons">
<button class="yes" name="resolution" value="${yes}">${yesText}</button>
<button class="no" name="resolution" value="${no}" formnovalidate>${noText}</button>
</div>
</form>
<footer>This link works once, and whoever has it can decide. Do not pass it on.</footer>`;
}

const CLOSED: Record<Exclude<LinkedRequest['state'], 'open'>, string> = {
  decided: 'This was already decided. Nothing is left to do.',
  expired: 'The time to answer ran out, which counts as a refusal.',
  withdrawn: 'This question was withdrawn: its message was canceled or has ended.',
};

/**
 * The page of a request.
 * @param posted what was posted and could not be taken, with the problem; shown again
 */
export function requestPage(linked: LinkedRequest, posted = new URLSearchParams(), problem?: string): string {
  const { state, resolution, request } = linked;
  const outcome =
    state === 'open' ? null : html`<p class="problem">${CLOSED[state]}${resolution && ` Decision: ${resolution}.`}</p>`;
  return pageOf(
    request.title,
    html`${problem && html`<p class="problem" role="alert">${problem}</p>`}${outcome}${question(linked)}${
      state === 'open' && decisionForm(linked, posted)
    }`,
  );
}

/** The page after a decision. @param isOver false while further approvals are needed */
export function decidedPage({ request }: LinkedRequest, word: string, isOver: boolean): string {
  const rest = isOver
    ? 'The message goes on from here.'
    : `Others must approve as well: ${request.quorum} approvals are needed.`;
  return pageOf(
    'Thank you',
    html`<h1>Your decision is recorded: ${word}</h1><p>${request.title}</p><p>${rest} You can close this page.</p>`,
  );
}

/** A page without a request: the link is wrong, or the platform cannot answer now. */
export function problemPage(title: string, text: string): string {
  return pageOf(title, html`<h1>${title}</h1><p>${text}</p>`);
}
