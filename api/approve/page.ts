import type { InputRequest, MessageState } from '../../contracts/api/messages.js';
import { FIELD_PREFIX, type FormField, formFields, utcWallTime } from '../../contracts/forms/form-fields.js';
import { asksPerson } from '../../contracts/message-states.js';
import type { LinkedRequest } from '../../messages/input/by-link.js';
import type { FormProblem } from '../../messages/input/form.js';
import { asTyped, Html, html } from './html.js';
import { isTooLarge, mayDecide, missingVotes, question, time } from './question.js';
import { ICON, SCRIPT, STYLE } from './style.js';

/** A page in the style of those that people reach by links. */
export function pageOf(title: string, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${new Html(`<style>${STYLE}</style>`)}
</head>
<body><main><div class="logo">${new Html(ICON)} Agent Fleet</div><div class="card">${content}</div></main>${new Html(`<script>${SCRIPT}</script>`)}</body>
</html>
`.markup;
}

/** What was posted and could not be taken, which is shown again. */
export interface Refused {
  posted: URLSearchParams;
  /** Shown above all. */
  problem: string;
  /** Of a form, shown beside its fields. */
  problems?: readonly FormProblem[];
}

/** What stands in a field: what was posted, at first the default of the form. */
function shownValue({ name, input, initial }: FormField, refused: Refused | undefined): string {
  if (!refused) return initial;
  const posted = refused.posted.get(`${FIELD_PREFIX}${name}`) ?? '';
  return input === 'datetime-local' && posted !== ''
    ? utcWallTime(posted.endsWith('Z') ? posted : `${posted}Z`)
    : posted;
}

function input(field: FormField, refused: Refused | undefined): Html {
  const { name, label, description, input: kind, bounds, required, options } = field;
  const id = `${FIELD_PREFIX}${name}`;
  const value = shownValue(field, refused);
  const problem = refused?.problems?.find((one) => one.field === name);
  const about = html`${required && new Html(' required')}${problem && html` aria-invalid="true" aria-describedby="${id}-problem"`}`;
  const wrong = problem && html`<small class="wrong" id="${id}-problem">${problem.text}</small>`;
  const text = html`${label}${required ? ' *' : ''}${description && html`<small>${description}</small>`}${wrong}`;
  if (kind === 'checkbox')
    return html`<label><input type="checkbox" name="${id}" value="true"${value === 'true' && new Html(' checked')}>${text}</label>`;
  if (kind === 'select') {
    const choices = options.map(
      (option) =>
        html`<option value="${option.value}"${option.value === value && new Html(' selected')}>${option.label}</option>`,
    );
    return html`<label>${text}<select name="${id}"${about}><option value="">–</option>${choices}</select></label>`;
  }
  if (kind === 'list')
    return html`<label>${text}<small>One value a line.</small><textarea name="${id}" rows="3"${about}>${asTyped(value)}</textarea></label>`;
  const zone = kind === 'datetime-local' && html`<small class="zone">In UTC.</small>`;
  const limits = Object.entries(bounds).map(([bound, limit]) => html` ${new Html(bound)}="${limit}"`);
  return html`<label>${text}${zone}<input type="${kind}"${limits} name="${id}" value="${value}"${about}></label>`;
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

function formContent(request: LinkedRequest['request'], refused: Refused | undefined): Html | null {
  if (request.kind !== 'form') return null;
  const fields = formFields(request);
  const isMarked = fields.some(({ required }) => required);
  return html`${isMarked && html`<p><small>Fields with * must be filled in.</small></p>`}${fields.map((field) => input(field, refused))}`;
}

/** The buttons that would be taken. */
function decisionForm(linked: LinkedRequest, refused: Refused | undefined): Html {
  const { request, standing, version } = linked;
  const [[yes, yesText], [no, noText]] = BUTTONS[request.kind];
  const mayApprove = standing.approval_refusal === undefined && !isTooLarge(linked);
  return html`
<form method="post">
<input type="hidden" name="version" value="${version}">
${mayApprove && formContent(request, refused)}
${standing.approval_refusal && html`<p class="problem">${standing.approval_refusal}</p>`}
<label>Comment<small>Optional. It is kept with your decision.</small><textarea name="comment" rows="2" maxlength="4096">${asTyped(refused?.posted.get('comment') ?? '')}</textarea></label>
<div class="buttons">
${mayApprove && html`<button class="yes" name="resolution" value="${yes}">${yesText}</button>`}
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

/** What there is to say before the question: why nothing can be decided here, and who has decided when. */
function outcome({ state, standing, request }: LinkedRequest): Html | null {
  const { refusal, decisions } = standing;
  if (state === 'open' && refusal === undefined) return null;
  const by = decisions.map(({ by, resolution, at }) => html`<br>${resolution} by ${by}, ${time(at)}`);
  const missing = state === 'open' && html`<br>${missingVotes(request, standing)}`;
  return html`<p class="problem">${state === 'open' ? refusal : CLOSED[state]}${by}${missing}</p>`;
}

/** The page of a request. @param refused what was posted before */
export function requestPage(linked: LinkedRequest, refused?: Refused): string {
  return pageOf(
    linked.request.title,
    html`${refused && html`<p class="problem" role="alert">${refused.problem}</p>`}${outcome(linked)}${question(linked)}${
      mayDecide(linked) && decisionForm(linked, refused)
    }`,
  );
}

/** What follows from a decision. */
function whatFollows({ request, standing, subject }: LinkedRequest, newState: MessageState): string {
  if (asksPerson(newState)) return missingVotes(request, standing, 1) ?? 'Others must approve as well.';
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
