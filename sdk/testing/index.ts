export type { GivenAgents, GivenTools, HumanAnswer } from './given.js';
export { type Run, type RunOptions, type RunToolOptions, run, runTool } from './run.js';
