import { curlCommand, postJson } from './curl.js';
import type { Printer } from './printer.js';
import type { Connection } from './steps.js';
import type { ApprovalDelivery, WebhookReceiver } from './webhook-receiver.js';

/** Sends a message for which somebody has to be asked. */
async function sendAsking({ client }: Connection, text: string, contextId: string) {
  const task = await client.send(text, { contextId });
  const { inputRequest } = (await client.messages.getById({ messageId: task.id })).message;
  if (!inputRequest) throw new Error(`message ${task.id} is ${task.status.state}, and nobody was asked`);
  return { task, request: inputRequest };
}

/** @returns the id of the message whose agent waits for an answer to its question */
export async function askQuestion(connection: Connection, printer: Printer, contextId: string): Promise<string> {
  const text = 'Restart the billing service';
  printer.step(`A message whose agent asks before it acts: "${text}"`, 'POST /send, method message/send');
  const { task, request } = await sendAsking(connection, text, contextId);
  printer.line(`${task.id} is ${task.status.state}: the concierge waits for an answer`);
  printer.quote(request.prompt || request.title);
  return task.id;
}

/** @returns the id of the message whose tool call waits for a human */
export async function askForApproval(connection: Connection, printer: Printer, contextId: string): Promise<string> {
  const text = 'publish: The billing service restarts at noon';
  printer.step(`A message whose agent calls that tool: "${text}"`, 'POST /send, method message/send');
  const { task, request } = await sendAsking(connection, text, contextId);
  printer.line(`${task.id} is ${task.status.state}: the concierge waits for its tool call`);
  printer.quote(`${request.tool}(${JSON.stringify(request.arguments)}): ${request.prompt}`);
  return task.id;
}

/** Shows that messages still wait for an answer. */
export async function showPending({ client }: Connection, printer: Printer, messageIds: string[]): Promise<void> {
  const { messages } = await client.messages.pending();
  for (const messageId of messageIds) {
    const found = messages.find((message) => message.messageId === messageId);
    if (!found) throw new Error(`message ${messageId} is not waiting any more`);
    printer.line(`POST /messages/pending: "${found.inputRequest?.title}" still waits for an answer`);
  }
}

/** Shows the webhook about a message that waits. */
export async function showDelivery(
  printer: Printer,
  receiver: WebhookReceiver,
  messageId: string,
): Promise<ApprovalDelivery> {
  printer.step('A webhook arrives');
  const delivery = await receiver.deliveryOf(messageId);
  printer.line(`signed, of type ${delivery.type}: "${delivery.event.title}"`);
  printer.line(`resolve_url ${delivery.resolve_url}`);
  printer.line(`callback_token ${shortened(delivery.callback_token)} (it answers this one question, once)`);
  return delivery;
}

/** A callback token as the demo prints it. */
const shortened = (token: string) => `${token.slice(0, 4)}…`;

/** Answers the agent's question with nothing but what the webhook brought, and waits for the agent to finish. */
export async function answerWithCurl(
  connection: Connection,
  printer: Printer,
  { callback_token, resolve_url, event }: ApprovalDelivery,
): Promise<void> {
  const bodyWith = (token: string) => JSON.stringify({ callback_token: token, resolution: 'confirmed' });
  printer.step(
    'The other system answers the question with the token of the webhook, without a login',
    curlCommand(resolve_url, bodyWith(shortened(callback_token))),
  );
  const answer = (await postJson(resolve_url, bodyWith(callback_token))) as { ok?: boolean };
  printer.line(JSON.stringify(answer));
  if (answer.ok !== true) throw new Error('the answer was refused');
  await showEnd(connection, printer, event.message_id);
}

/** Approves on the page behind the link of the webhook, as a person without a login would, and waits for the agent to finish. */
export async function approveOnPage(
  connection: Connection,
  printer: Printer,
  { callback_token, event }: ApprovalDelivery,
): Promise<void> {
  const { base_url } = connection.dev;
  const page = `${base_url}/approve/${callback_token}`;
  printer.step(
    'Somebody opens the link of the webhook and approves on the page, without a login',
    `GET ${base_url}/approve/…`,
  );
  const shown = await fetch(page);
  if (!shown.ok) throw new Error(`the page answered ${shown.status}`);
  const body = new URLSearchParams({ resolution: 'approved', comment: 'Fine, go ahead.' });
  const answer = await fetch(page, { method: 'POST', body });
  if (!answer.ok) throw new Error(`the approval was refused: ${answer.status}`);
  printer.line('approved, with a comment');
  await showEnd(connection, printer, event.message_id);
}

/** Waits for the agent to finish, and shows its answer. */
async function showEnd({ client }: Connection, printer: Printer, messageId: string): Promise<void> {
  const message = await client.messages.waitFor(messageId, { until: 'terminal' });
  printer.line(`${message.state} after ${((message.durationMs ?? 0) / 1000).toFixed(1)} s, the wait included`);
  printer.quote(message.assistantOutput || (message.errorMessage ?? ''));
  if (message.state !== 'completed') throw new Error(`message ${messageId} ended as ${message.state}`);
}
