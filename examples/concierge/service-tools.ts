import { type Arguments, type ConciergeTool, textArgument } from './tool.js';

interface Service {
  version: string;
  restarts: number;
}

const ACTIONS = ['restart', 'deploy', 'delete'];

/**
 * A simulated data centre in the memory of this process. Operations change only its state.
 */
export function createServiceTools(): ConciergeTool[] {
  const services = new Map<string, Service>([
    ['billing', { version: '1.4.2', restarts: 0 }],
    ['search', { version: '3.0.0', restarts: 0 }],
    ['checkout', { version: '2.7.1', restarts: 0 }],
  ]);
  return [listTool(services), operateTool(services)];
}

function listTool(services: Map<string, Service>): ConciergeTool {
  return {
    name: 'list_services',
    description: 'Lists the (simulated) services with their versions and how often they were restarted.',
    parameters: { type: 'object', properties: {} },
    run: async () => describe(services),
  };
}

function operateTool(services: Map<string, Service>): ConciergeTool {
  return {
    name: 'operate_service',
    description: 'Restarts, deploys or deletes a (simulated) service. A human is asked first.',
    parameters: {
      type: 'object',
      properties: {
        action: { type: 'string', enum: ACTIONS },
        service: { type: 'string' },
        version: { type: 'string', description: 'for deploy' },
      },
      required: ['action', 'service'],
    },
    question: (args) => ({
      kind: 'confirmation',
      title: `${sentence(args)}?`,
      prompt: `Shall I ${sentence(args).toLowerCase()}? (It is simulated: nothing real changes.)`,
      tool: 'operate_service',
      arguments: args,
    }),
    run: async (args) => `${operate(services, args)}\n\n${describe(services)}`,
  };
}

function sentence(args: Arguments): string {
  const action = textArgument(args, 'action');
  const version = textArgument(args, 'version');
  return `${action.charAt(0).toUpperCase()}${action.slice(1)} ${textArgument(args, 'service')}${version && ` ${version}`}`;
}

function operate(services: Map<string, Service>, args: Arguments): string {
  const name = textArgument(args, 'service').toLowerCase();
  const service = services.get(name);
  switch (textArgument(args, 'action').toLowerCase()) {
    case 'restart':
      if (!service) return unknown(services, name);
      service.restarts += 1;
      return `Done (simulated): ${name} was restarted.`;
    case 'deploy': {
      const version = textArgument(args, 'version') || nextPatch(service?.version);
      services.set(name, { version, restarts: service?.restarts ?? 0 });
      return `Done (simulated): ${name} ${version} is deployed.`;
    }
    case 'delete':
      return services.delete(name) ? `Done (simulated): ${name} is deleted.` : unknown(services, name);
    default:
      return `I can only ${ACTIONS.join(', ')} a service.`;
  }
}

function unknown(services: Map<string, Service>, name: string): string {
  return `There is no service "${name}", only ${[...services.keys()].join(', ')}.`;
}

function nextPatch(version = '0.0.0'): string {
  const [major = '0', minor = '0', patch = '0'] = version.split('.');
  return `${major}.${minor}.${Number.parseInt(patch, 10) + 1}`;
}

function describe(services: Map<string, Service>): string {
  const lines = [...services].map(([name, { version, restarts }]) => `- ${name} ${version}, restarted ${restarts}×`);
  return ['Services (simulated):', ...lines].join('\n');
}
