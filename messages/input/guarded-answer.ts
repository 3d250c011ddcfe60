import { answerContent } from '../../policy/guards/content.js';
import { findingEvents } from '../../policy/verdict.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore, MessageRef } from '../core.js';
import { recordMessageDecision } from '../record-decision.js';

/**
 * Has guards inspect an answer before it is taken, because it goes to the agent like a message. Nobody can approve an answer, so a finding that would need
 * approval denies it. This runs before the decision's transaction, so that nothing is locked while the guards are read.
 * @param answer comment and data, or the parts of a follow-up
 * @param mayAnswer called before a finding is reported or recorded: rejects for somebody who may not answer; false for a repeat of an answer that was taken
 * @throws PlatformError forbidden when a guard denies it; the request stays open
 */
export async function inspectAnswer(
  core: Pick<MessageCore, 'db' | 'policies'>,
  ref: MessageRef,
  answer: Record<string, unknown>,
  mayAnswer: () => Promise<boolean>,
): Promise<void> {
  const guards = await core.policies.guardsOf(ref.tenant_id);
  if (!guards?.inspects('message')) return;
  const findings = guards.inspect(answerContent(answer), { canWait: false });
  if (findings.length === 0 || !(await mayAnswer())) return;
  const events = findingEvents(findings, { action: 'answer', tool: null });
  await core.db.tenant(ref.tenant_id, (tx) => recordMessageDecision(tx, ref, events));
  const denial = findings.find(({ decision }) => decision === 'deny');
  if (denial) throw new PlatformError('forbidden', `The guard ${denial.guard} denies the answer: ${denial.reason}`);
}
