import type { InputRequest } from '../../contracts/api/messages.js';
import type { LinkedMessage, LinkedPlan, LinkedRequest, LinkedStep } from '../../messages/input/by-link.js';
import type { LinkStanding } from '../../messages/input/link-standing.js';
import type { HeldOutput } from '../../messages/read/rows.js';
import { type Html, html } from './html.js';
import { artifactOf, partsOf, rowsOf, section } from './values.js';

/** Characters of JSON that the page shows at most: an answer of an agent may have more, and no phone could show that. */
const SHOWN_MAX = 2 * 1024 * 1024;

/** Whether a request asks about more than the page can show. Nobody may approve by the page what it does not show. */
export function isTooLarge({ subject }: LinkedRequest): boolean {
  return (
    subject.kind === 'message' && subject.output !== undefined && JSON.stringify(subject.output).length > SHOWN_MAX
  );
}

/** Whether an answer by this link would be taken. */
export function mayDecide({ state, standing }: LinkedRequest): boolean {
  return state === 'open' && standing.refusal === undefined;
}

/** A time as people read it: in UTC, and in the reader's zone where the page's script runs. */
export function time(at: string): Html {
  return html`<time datetime="${at}">${at.slice(0, 16).replace('T', ' ')} UTC</time>`;
}

function fact(name: string, value: Html | string | null | undefined): Html | null {
  return value ? html`<dt>${name}</dt><dd>${value}</dd>` : null;
}

/**
 * What is still needed where several principals must approve; null where one decides.
 * @param more approvals that were given since
 */
export function missingVotes(
  { quorum, approvals }: Pick<InputRequest, 'quorum' | 'approvals'>,
  { approvers }: LinkStanding,
  more = 0,
): string | null {
  if (quorum < 2) return null;
  const given = approvals.length + more;
  const from = approvers.length > 0 ? ` from: ${approvers.join(', ')}` : ' from somebody else';
  return `${given} of ${quorum} approvals are given; ${quorum - given} more needed${given > 0 || approvers.length > 0 ? from : ''}.`;
}

/** Agents that match these members, in words. */
function agentText({ agent_type, instance_id, skill_id }: LinkedMessage['agent']): string | null {
  const words = [
    ...(agent_type === undefined ? [] : [`the agent “${agent_type}”`]),
    ...(instance_id === undefined ? [] : [`the instance “${instance_id}”`]),
    ...(skill_id === undefined ? [] : [`the skill “${skill_id}”`]),
  ];
  return words.length > 0 ? words.join(', ') : null;
}

const capital = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

function executorText({ executor }: LinkedRequest['request']): string {
  return executor?.type === 'agent'
    ? `An agent of the type “${executor.id}” carries it out.`
    : 'The platform carries it out.';
}

/** What a message is about to do, and by whom. */
function messageText({ stage, request }: LinkedRequest, { sent_by, agent: members }: LinkedMessage): string {
  const receiver = agentText(members) ?? 'an agent';
  const agent = `The agent “${members.agent_type ?? 'unknown'}”`;
  switch (stage) {
    case 'tool':
      return `${agent} wants to call the tool “${request.tool}”, for a message of ${sent_by}. ${executorText(request)}`;
    case 'admission':
      return `${capital(sent_by)} has sent a message to ${receiver}.`;
    case 'dispatch':
      return `A message of ${sent_by} is about to go to ${receiver}.`;
    case 'output':
      return `${agent} has answered a message of ${sent_by}.`;
    case 'agent':
      return `${agent} asks, for a message of ${sent_by}.`;
    case 'plan':
    case 'proposal':
      return `A step of a plan of ${sent_by} is about to go to ${receiver}.`;
    default:
      return stage satisfies never;
  }
}

/** What is about to happen, and by whom. */
function happening(linked: LinkedRequest): string {
  const { subject } = linked;
  if (subject.kind === 'message') return messageText(linked, subject);
  const { sent_by, steps } = subject;
  return `${capital(sent_by)} wants to carry out a plan of ${steps.length} ${steps.length === 1 ? 'step' : 'steps'}.`;
}

/** Who asks for the decision, where that is not said yet. */
function asking({ request: { source }, asked_by }: LinkedRequest): string | null {
  if (source === 'agent') return null;
  return ` ${capital(asked_by)} asks for your decision.`;
}

function outputOf({ artifacts, status_message, input_request }: HeldOutput): Html {
  const { parts = [], ...about } = status_message ?? {};
  return html`${artifacts.map(artifactOf)}${section('Message of the agent', about)}${partsOf(parts)}${section('Question of the agent', input_request)}`;
}

/** All of a message that is decided about. */
function messageContent({ stage, request }: LinkedRequest, { output, parts, metadata }: LinkedMessage): Html {
  const { arguments: given, target } = request;
  const about = stage === 'plan' ? 'The step:' : 'The arguments that you decide about:';
  const message = stage === 'plan' ? 'The message that would be sent:' : 'The message that waits for it:';
  return html`
${given && html`<h2>${about}</h2><div class="content">${rowsOf(given)}</div>`}
${target && html`<h2>Whose tool it is:</h2><div class="content">${rowsOf(target)}</div>`}
${output && html`<h2>The output that you decide about:</h2><div class="content">${outputOf(output)}</div>`}
<h2>${message}</h2><div class="content">${partsOf(parts)}${section('Metadata of the message', metadata)}</div>`;
}

function stepOf(
  { step_id, parts, agent, timeout_seconds, requires_approval, ...step }: LinkedStep,
  place: number,
): Html {
  const about = {
    description: step.description,
    ...agent,
    ...(step.depends_on.length > 0 && { after: step.depends_on }),
    ...(requires_approval && { requires_approval }),
    ...(timeout_seconds !== null && { timeout_seconds }),
    ...(step.max_attempts > 1 && { max_attempts: step.max_attempts }),
  };
  return html`<h3>${place + 1}. ${step_id}</h3>${rowsOf(about)}<h3>Its message:</h3>${partsOf(parts)}`;
}

/** All of a plan that is decided about. */
function planContent({ plan_id, description, max_parallel, steps }: LinkedPlan): Html {
  return html`
<h2>The plan:</h2><div class="content">${rowsOf({ description, steps_at_once: max_parallel, plan_id })}</div>
<h2>Its steps:</h2><div class="content">${steps.map(stepOf)}</div>`;
}

/** All that is decided about, whole: whatever the digest of the request covers. */
function content(linked: LinkedRequest): Html {
  const { subject } = linked;
  return subject.kind === 'plan' ? planContent(subject) : messageContent(linked, subject);
}

const TOO_LARGE =
  'What you decide about is too large for this page. Read it with /messages/get_held_output and approve it over the API, or reject it here.';

/** What is asked. The text of the question and all content is shown only while the request is open: the link lies in a mailbox long after that. */
export function question(linked: LinkedRequest): Html {
  const { state, request, standing, subject } = linked;
  const { title, prompt, tool } = request;
  const isOpen = state === 'open';
  return html`
<p>${happening(linked)}${asking(linked)}</p>
<h1>${title}</h1>
${isOpen && prompt !== '' && prompt !== title && html`<p class="prompt">${prompt}</p>`}
<dl class="facts">
${fact('Tool', tool)}
${fact('Agent', subject.kind === 'message' ? agentText(subject.agent) : null)}
${fact(subject.kind === 'plan' ? 'Proposed by' : 'Sent by', subject.sent_by)}
${fact('Asked', time(request.requested_at))}
${fact('Answer until', time(request.expires_at))}
${isOpen && fact('Approvals', missingVotes(request, standing))}
${isOpen && request.quorum < 2 && fact('May decide', standing.approvers.join(', '))}
</dl>
${isOpen && (isTooLarge(linked) ? html`<p class="problem">${TOO_LARGE}</p>` : content(linked))}`;
}
