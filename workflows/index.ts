export { agentWatch } from './agent-watch.js';
export { message } from './message.js';
export { session } from './session.js';
