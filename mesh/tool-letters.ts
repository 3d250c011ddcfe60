import { z } from 'zod';
import { ToolResult } from '../contracts/tools.js';
import { ForwardedCall, PlacedCall } from './tool-link.js';

/** What goes from node to node. `from` is where the result belongs. */
const Letter = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), from: z.string(), call: PlacedCall }),
  z.object({ kind: z.literal('forward'), from: z.string(), call: ForwardedCall }),
  z.object({ kind: z.literal('withdraw'), call_id: z.string() }),
  z.object({ kind: z.literal('outcome'), call_id: z.string(), sent: z.boolean(), result: ToolResult }),
]);
export type Letter = z.infer<typeof Letter>;

/** Reads a letter; undefined for what is none. */
export function readLetter(text: string): Letter | undefined {
  try {
    return Letter.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
