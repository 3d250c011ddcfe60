const ID_MAX = 256;

/** What the address of a conversation says: its session, and the agent that the next message is for. */
export interface TalkSearch {
  session?: string;
  agent?: string;
}

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseTalkSearch(search: Record<string, unknown>): TalkSearch {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === 'string' && value !== '' && value.length <= ID_MAX ? { [name]: value } : {};
  };
  return { ...text('session'), ...text('agent') };
}
