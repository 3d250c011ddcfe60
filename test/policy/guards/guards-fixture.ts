import { GuardName } from '../../../contracts/api/policies/guards.js';
import { AddressGuard } from '../../../http/outbound-guard.js';
import { messageContent, toolArguments } from '../../../policy/guards/content.js';
import type { GuardRow } from '../../../policy/guards/guard-store.js';
import type { GuardFinding, GuardSettings } from '../../../policy/guards/guarded-content.js';
import { compileGuards } from '../../../policy/guards/settings.js';

type Settings = Omit<GuardRow, 'updated_at' | 'updated_by'>;
const OFF: Settings[] = GuardName.options.map((guard) => ({ guard, enabled: false, decision: 'deny', config: {} }));

/** Settings in which only these guards are on. */
export function only(...rows: (Partial<Settings> & { guard: GuardName })[]): GuardSettings {
  const on = rows.map((row): Settings => ({ enabled: true, decision: 'deny', config: {}, ...row }));
  const others = OFF.filter(({ guard }) => !rows.some((row) => row.guard === guard));
  const addresses = new AddressGuard([]);
  return compileGuards([...on, ...others], (address) => addresses.allows(address));
}

/** What the guards find in the arguments of a tool call. */
export function inArguments(settings: GuardSettings, given: Record<string, unknown>): GuardFinding[] {
  return settings.inspect(toolArguments(given));
}

/** What the guards find in a message of one text. */
export function inText(settings: GuardSettings, text: string): GuardFinding[] {
  return settings.inspect(messageContent([{ kind: 'text', text }], {}));
}
