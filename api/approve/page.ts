import type { InputRequest, MessageState } from '../../contracts/api/messages.js';
import type { LinkedRequest } from '../../messages/input/by-link.js';
import { FIELD_PREFIX, type FormField, formFields } from './form-fields.js';
import { asTyped, Html, html } from './html.js';
import { isTooLarge, question } from './question.js';
import { STYLE } from './style.js';

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

function input(field: FormField, posted: URLSearchParams): Html {
  const { name, label, description, input: kind, required, options, initial } = field;
  const id = `${FIELD_PREFIX}${name}`;
  const value = posted.get(id) ?? (posted.size === 0 ? initial : '');
  const must = required && new Html(' required');
  const text = html`${label}${required ? ' *' : ''}${description && html`<small>${description}</small>`}`;
  if (kind === 'checkbox')
    return html`<label><input type="checkbox" name="${id}" value="true"${value === 'true' && new Html(' checked')}>${text}</label>`;
  if (kind === 'select') {
    const choices = options.map(
      (option) =>
        html`<option value="${option.value}"${option.value === value && new Html(' selected')}>${option.label}</option>`,
    );
    return html`<label>${text}<select name="${id}"${must}><option value="">–</option>${choices}</select></label>`;
  }
  if (kind === 'list')
    return html`<label>${text}<small>One value a line.</small><textarea name="${id}" rows="3"${must}>${asTyped(value)}</textarea></label>`;
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

/** The word that refuses a request of this kind. */
export function refusalOf(kind: InputRequest['kind']): string {
  return BUTTONS[kind][1][0];
}

function decisionForm(linked: LinkedRequest, posted: URLSearchParams): Html {
  const { request, version } = linked;
  const [[yes, yesText], [no, noText]] = BUTTONS[request.kind];
  const fields = request.kind === 'form' ? formFields(request).map((field) => input(field, posted)) : [];
  return html`
<form method="post">
<input type="hidden" name="version" value="${version}">
${fields}
<label>Comment<small>Optional. It is kept with your decision.</small><textarea name="comment" rows="2" maxlength="4096">${asTyped(posted.get('comment') ?? '')}</textarea></label>
<div class="buttons">
${!isTooLarge(linked) && html`<button class="yes" name="resolution" value="${yes}">${yesText}</button>`}
<button class="no" name="resolution" value="${no}" formnovalidate>${noText}</button>
</div>
</form>
<footer>This link works once, and whoever has it can decide. Do not pass it on.</footer>`;
}

const CLOSED: Record<Exclude<LinkedRequest['state'], 'open'>, string> = {
  decided: 'This was already decided. Nothing is left to do.',
  expired: 'The time to answer ran out, which counts as a refusal.',
  withdrawn: 'This question was withdrawn: its message or plan was canceled or has ended.',
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

/** What follows from a decision. */
function whatFollows({ request, subject }: LinkedRequest, newState: MessageState): string {
  if (newState === 'input-required') return `Others must approve as well: ${request.quorum} approvals are needed.`;
  return newState === 'failed' ? `The ${subject.kind} ends here.` : `The ${subject.kind} goes on from here.`;
}

/** The page after a decision. @param newState of the message after it, or of the plan in the words of messages */
export function decidedPage(linked: LinkedRequest, word: string, newState: MessageState): string {
  return pageOf(
    'Thank you',
    html`<h1>Your decision is recorded: ${word}</h1><p>${linked.request.title}</p><p>${whatFollows(linked, newState)} You can close this page.</p>`,
  );
}

/** A page without a request: the link is wrong, or the platform cannot answer now. */
export function problemPage(title: string, text: string): string {
  return pageOf(title, html`<h1>${title}</h1><p>${text}</p>`);
}
