import { pythonWithPackage } from '../../../setup/python-package.js';
import { BalancedNodes } from './balanced-nodes.js';
import { nodeFailures } from './cases.js';
import { PythonAgent } from './python-agent.js';

const [python, nodes] = await Promise.all([pythonWithPackage(), BalancedNodes.start()]);

nodeFailures('the Python SDK', nodes, (options) => new PythonAgent(python, options));
