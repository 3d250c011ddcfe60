import type { MessageUsage, Usage } from '../../contracts/api/messages.js';
import { LIMITS } from '../../contracts/limits.js';

type OfModel = NonNullable<MessageUsage['by_model']>[number];

/** A sum that stays an exact number, whatever agents report. */
function addTokens(before: number, more: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, before + more);
}

function sumOf(before: OfModel, more: OfModel) {
  const reportsCost = before.cost_usd !== undefined || more.cost_usd !== undefined;
  return {
    input_tokens: addTokens(before.input_tokens, more.input_tokens),
    output_tokens: addTokens(before.output_tokens, more.output_tokens),
    ...(reportsCost && { cost_usd: Math.min(Number.MAX_VALUE, (before.cost_usd ?? 0) + (more.cost_usd ?? 0)) }),
  };
}

/** The models of a message with a turn more. Beyond the bound, further models count as the last one in the list. */
function addModel(before: readonly OfModel[], more: OfModel): OfModel[] {
  const found = before.findIndex(({ model }) => model === more.model);
  const place = found < 0 && before.length >= LIMITS.messageModelsMax ? before.length - 1 : found;
  const kept = before[place];
  if (!kept) return [...before, more];
  return before.with(place, { ...sumOf(kept, more), ...(kept.model !== undefined && { model: kept.model }) });
}

/**
 * The usage of a message after one more turn: the sums, and the model of the newest turn. A turn that names no model counts as that of the turn
 * before. Once there are several models the usage says what each used, because each has a price of its own.
 */
export function addUsage(before: MessageUsage | null, reported: Usage | undefined): MessageUsage | null {
  if (!before || !reported) return reported ?? before;
  const model = reported.model ?? before.model;
  const more: OfModel = { ...reported, ...(model !== undefined && { model }) };
  const { by_model, ...all } = before;
  const models = by_model || model !== before.model ? addModel(by_model ?? [all], more) : null;
  return { ...sumOf(all, more), ...(model !== undefined && { model }), ...(models && { by_model: models }) };
}
