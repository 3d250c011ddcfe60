import { BalancedNodes } from './balanced-nodes.js';
import { nodeFailures } from './cases.js';
import { TypeScriptAgent } from './counting-agent.js';

nodeFailures('the TypeScript SDK', await BalancedNodes.start(), (options) => new TypeScriptAgent(options));
