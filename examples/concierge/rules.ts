import type { AgentTask, TaskResult } from '../../sdk/index.js';
import { ArithmeticError, evaluate } from './arithmetic.js';
import { streamWords } from './stream-words.js';
import { type Arguments, type ConciergeTool, refusalText } from './tool.js';

export interface Intent {
  tool: string;
  args: Arguments;
}

const HELP = `I am the fleet's concierge. Try:
- "what is 12 * (3 + 4)?": I compute
- "status": what the fleet is doing right now
- "services", "restart the billing service", "deploy search 3.1.0": I ask before I act (simulated)
- "plan a trip" or "order": I ask with a form
- "publish: The office is closed": a tool of the librarian, which a policy may hold for approval
- "wait 20 seconds": a long task, to cancel or to watch`;

const OPERATION =
  /\b(restart|deploy|delete)\s+(?:the\s+)?([a-z][\w-]*)(?:\s+service)?(?:\s+(?:to\s+)?(?:version\s+)?v?(\d[\w.-]*))?/i;
const NOTICE = /^\s*publish\b[\s:]+(.*\S)/is;
const WAIT = /\bwait\s+(?:for\s+)?(\d+(?:\.\d+)?)\s*(m|min|minutes?)?\b/i;
const QUESTION = /^\s*(?:what(?:'s| is)|how much is|compute|calculate|=)\s+(.+?)\s*[?=.!]*\s*$/is;

/** The intent of a message, by fixed rules; null when no rule matches. */
export function intentOf(text: string): Intent | null {
  const notice = NOTICE.exec(text)?.[1];
  if (notice) return { tool: 'publish_notice', args: { text: notice } };
  const operation = OPERATION.exec(text);
  if (operation) {
    const [, action = '', service = '', version] = operation;
    return {
      tool: 'operate_service',
      args: { action: action.toLowerCase(), service: service.toLowerCase(), ...(version && { version }) },
    };
  }
  const waiting = WAIT.exec(text);
  if (waiting) return { tool: 'wait', args: { seconds: Number(waiting[1]) * (waiting[2] ? 60 : 1) } };
  const expression = expressionIn(text);
  if (expression !== null) return { tool: 'calculate', args: { expression } };
  if (/\b(trip|travel|holiday)\b/i.test(text)) return { tool: 'plan_trip', args: {} };
  if (/\border\b/i.test(text)) return { tool: 'place_order', args: {} };
  if (/\bservices\b/i.test(text)) return { tool: 'list_services', args: {} };
  return /\b(status|report|fleet|agents?)\b/i.test(text) ? { tool: 'fleet_status', args: {} } : null;
}

/** The text after "what is" if it has a digit, or the whole text if it is an expression. */
function expressionIn(text: string): string | null {
  const asked = QUESTION.exec(text)?.[1];
  if (asked !== undefined) return /\d|\bpi\b/.test(asked) ? asked : null;
  try {
    evaluate(text);
    return text;
  } catch (error) {
    if (error instanceof ArithmeticError) return null;
    throw error;
  }
}

/** The handler without a model. It keeps no state between messages, so the process may restart while a human decides. */
export function createRuleHandler(tools: ConciergeTool[]) {
  return async (task: AgentTask): Promise<TaskResult> => {
    const intent = intentOf(task.text);
    const tool = tools.find((candidate) => candidate.name === intent?.tool);
    if (!intent || !tool) return streamWords(task, HELP);
    if (tool.question && !task.resolution) return task.ask(tool.question(intent.args));
    if (task.resolution && !task.resolution.accepted) return streamWords(task, refusalText(task.resolution));
    return streamWords(task, await tool.run(intent.args, task, task.resolution?.data ?? {}));
  };
}
