import type {
  Guard,
  GuardConfigs,
  GuardDecision,
  GuardName,
  GuardStage,
  SecretKind,
  UpdateGuardRequest,
} from '../../contracts/api/policies/guards.js';

/** What each guard is called, and what it finds. */
export const GUARDS: Record<GuardName, { label: string; finds: string }> = {
  path: {
    label: 'Paths',
    finds: 'Paths outside the directories that are allowed, and ways out of them, in arguments of tool calls.',
  },
  egress: {
    label: 'Hosts',
    finds: 'Hosts that may not be reached: private addresses, local files, and what the lists say.',
  },
  secrets: { label: 'Secrets', finds: 'Credentials, payment cards, bank accounts and other personal data.' },
  prompt_injection: {
    label: 'Prompt injection',
    finds: 'Text that instructs the agent that reads it. It guesses, so alone it asks a person at most.',
  },
  limits: { label: 'Limits', finds: 'Content and chains of tool calls that are larger than you allow.' },
};

/** What happens with a finding. `tone`: of the badge. */
export const GUARD_DECISIONS: Record<GuardDecision, { label: string; does: string; tone: string }> = {
  allow: { label: 'Record', does: 'is recorded and goes on', tone: 'busy' },
  require_approval: {
    label: 'Ask a person',
    does: 'waits for a person; results of tools, which nobody can wait for, are withheld',
    tone: 'wait',
  },
  deny: { label: 'Deny', does: 'is stopped', tone: 'bad' },
};

const STAGES: Record<GuardStage, string> = {
  message: 'Messages to agents',
  output: 'What agents give back',
  tool_arguments: 'Arguments of tool calls',
  tool_result: 'Results of tool calls',
};

const SECRETS: Record<SecretKind, string> = {
  credentials: 'Credentials',
  payment_cards: 'Payment cards',
  bank_accounts: 'Bank accounts',
  national_ids: 'National ids',
  email_addresses: 'E-mail addresses',
  phone_numbers: 'Phone numbers',
};

/** A setting of a guard, and how it is edited: lines, boxes to tick, or a number, which may be empty where it bounds nothing then. */
export interface Setting {
  name: string;
  label: string;
  about?: string;
  input: 'lines' | 'number' | 'number-or-none' | Record<string, string>;
}

type SettingsOf<Name extends GuardName> = (Setting & { name: keyof GuardConfigs[Name] & string })[];
const LOOKS_AT = { name: 'stages', label: 'Looks at', input: STAGES } as const;

/** The settings of each guard, in the order in which they are shown. */
export const SETTINGS: { [Name in GuardName]: SettingsOf<Name> } = {
  path: [{ name: 'allowed_roots', label: 'Allowed directories', about: 'One a line. None: any.', input: 'lines' }],
  egress: [
    {
      name: 'allowed_hosts',
      label: 'Allowed hosts',
      about: 'One a line: a name, an address, *.example.com. None: every public host.',
      input: 'lines',
    },
    {
      name: 'denied_hosts',
      label: 'Denied hosts',
      about: 'One a line. They are denied even if they are allowed above.',
      input: 'lines',
    },
    LOOKS_AT,
  ],
  secrets: [{ name: 'detect', label: 'Looks for', input: SECRETS }, LOOKS_AT],
  prompt_injection: [LOOKS_AT],
  limits: [
    { name: 'max_message_bytes', label: 'Bytes of a message', input: 'number' },
    { name: 'max_output_bytes', label: 'Bytes of an answer', input: 'number' },
    { name: 'max_argument_bytes', label: 'Bytes of arguments', input: 'number' },
    { name: 'max_result_bytes', label: 'Bytes of a result', input: 'number' },
    { name: 'max_depth', label: 'Objects inside each other', input: 'number' },
    { name: 'max_hops', label: 'Calls that wait for a call', input: 'number' },
    {
      name: 'max_repeated_calls',
      label: 'Repeats of a tool call',
      about: 'With the same arguments, in one dispatch. Empty: any number.',
      input: 'number-or-none',
    },
  ],
};

/** Where a guard looks, in a few words. */
export function looksAt({ guard, config }: Guard): string {
  if (guard === 'path') return 'arguments of tool calls';
  if (guard === 'limits') return 'everything';
  if (config.stages.length === 0) return 'nothing';
  return config.stages.map((stage) => STAGES[stage].toLowerCase()).join(', ');
}

/** A guard as the form has it. */
export type EditedGuard = Pick<Guard, 'enabled' | 'decision'> & { config: Record<string, unknown> };

/** What of a guard has changed, as `update_guard` takes it: each member that is given replaces the stored one. Undefined for nothing. */
export function changesOf(stored: Guard, { enabled, decision, config }: EditedGuard): UpdateGuardRequest | undefined {
  const before: Record<string, unknown> = stored.config;
  const changed = Object.entries(config).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const changes = {
    ...(enabled !== stored.enabled && { enabled }),
    ...(decision !== stored.decision && { decision }),
    ...(changed.length > 0 && { config: Object.fromEntries(changed) }),
  };
  return Object.keys(changes).length > 0 ? ({ guard: stored.guard, ...changes } as UpdateGuardRequest) : undefined;
}
