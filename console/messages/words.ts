import type { MessageRecord, MessageState, WaitsFor } from '../../contracts/api/messages.js';
import { durationText } from '../parts/time.js';

/** What a message waits for, as the title of a group. */
export const REASONS: Record<WaitsFor['kind'], string> = {
  agent: 'No agent online',
  room: 'All agents full',
  turn: 'Not its turn',
  evaluator: 'Policy evaluator',
  quota: 'Tenant at its limit',
  person: 'A person is asked',
};

/** What helps. */
export const REMEDIES: Record<WaitsFor['kind'], string> = {
  agent: 'Start an agent of the type, or cancel what nobody needs any more.',
  room: 'Start more agents of the type, or raise max_concurrent_tasks.',
  turn: 'In an ordered session another message comes first. Answer or cancel that one.',
  evaluator: 'Look whether the evaluator of the policy answers.',
  quota: 'Agents have TENANT_MAX_IN_FLIGHT messages. They go on as others end.',
  person: 'Decide in the inbox.',
};

/** The states in a word each. */
export const STATE_WORDS: Record<MessageState, string> = {
  submitted: 'waiting',
  working: 'working',
  'input-required': 'asking',
  completed: 'completed',
  failed: 'failed',
  canceled: 'canceled',
};

/** How long something took. */
export const tookText = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)} ms` : durationText(ms));

/** What a list calls a message. */
export function titleOf({ user_input, preview, parts }: MessageRecord): string {
  const words = user_input || preview;
  return words || (parts.length > 0 ? 'A message without text' : 'A message whose content is erased');
}

/** Who waits for a message, where that is known. */
export function targetText({ target = {} }: Pick<WaitsFor, 'target'>): string {
  const { agent_type, instance_id, skill_id } = target;
  return instance_id ?? agent_type ?? (skill_id ? `the skill ${skill_id}` : '');
}
