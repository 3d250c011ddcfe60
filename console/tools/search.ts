/** What the address of the tools says: a filter, and the tool that is shown beside the list. */
export interface ToolsSearch {
  q?: string;
  tool?: string;
}

const TEXT_MAX = 256;

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseToolsSearch(search: Record<string, unknown>): ToolsSearch {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === 'string' && value !== '' && value.length <= TEXT_MAX ? { [name]: value } : {};
  };
  return { ...text('q'), ...text('tool') };
}
