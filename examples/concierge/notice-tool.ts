import { type ConciergeTool, textArgument } from './tool.js';

/** Publishes by a tool of the librarian. Whether a human has to approve that is for the policies of the tenant to say. */
export const publishNotice: ConciergeTool = {
  name: 'publish_notice',
  description: 'Publishes a (simulated) notice on the board of the librarian.',
  parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  run: async (args, task) => {
    const notice = { text: textArgument(args, 'text') };
    const published = (await task.callTool('publish_notice', notice)) as { number: number };
    return `Done (simulated): "${notice.text}" is notice ${published.number} on the board.`;
  },
};
