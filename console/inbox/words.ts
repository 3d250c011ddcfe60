import type { InputRequest } from '../../contracts/api/messages.js';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';

/** The words of an answer, as buttons say them and as the API takes them. */
export const WORDS: Record<InputRequest['kind'], { yes: [string, string]; no: [string, string] }> = {
  approval: { yes: ['Approve', 'approved'], no: ['Reject', 'rejected'] },
  confirmation: { yes: ['Confirm', 'confirmed'], no: ['Decline', 'declined'] },
  form: { yes: ['Submit', 'submitted'], no: ['Decline', 'declined'] },
};

/** Whether a word of a decision lets it happen. */
export const isYes = (resolution: string): boolean =>
  Object.values(WORDS).some(({ yes: [, word] }) => word === resolution);

/** Whether a policy can decide what the request asks: guards, agents and plans ask whatever policies say. */
export const isDraftable = ({ input_request }: RequestRecord): boolean => input_request.source === 'policy';

const TEXT_MAX = 120;

/** Arguments in one line: `amount: 700, to: ada`. */
export function argumentsText(args: unknown): string {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  const isObject = typeof args === 'object' && args !== null && !Array.isArray(args);
  const all = isObject ? Object.entries(args).map(([name, value]) => `${name}: ${text(value)}`) : [text(args)];
  return all.join(', ').slice(0, TEXT_MAX);
}
