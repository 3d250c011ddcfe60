/** The redirects that a sign-in takes. */
const REDIRECTS_MAX = 12;

/** What a request came to. */
export interface Visit {
  /** The address in the end. */
  url: URL;
  status: number;
  text: string;
  /** The addresses on the way, the first one first. */
  way: URL[];
}

/** A browser without scripts: it keeps the cookies of each host and port, and follows redirects. */
export class Browser {
  readonly cookies = new Map<string, Map<string, string>>();
  /** Whole `Set-Cookie` headers, as they came. */
  readonly received: string[] = [];

  #cookieOf({ host }: URL): string {
    return [...(this.cookies.get(host) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  #keep({ host }: URL, headers: Headers): void {
    const jar = this.cookies.get(host) ?? new Map<string, string>();
    this.cookies.set(host, jar);
    for (const line of headers.getSetCookie()) {
      this.received.push(line);
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
  }

  async fetch(url: URL | string, init: RequestInit = {}): Promise<Response> {
    const address = new URL(url);
    const headers = { ...(init.headers as Record<string, string>), cookie: this.#cookieOf(address) };
    const response = await fetch(address, { ...init, headers, redirect: 'manual' });
    this.#keep(address, response.headers);
    return response;
  }

  /** Opens an address. @param stopAt where to stop, before it is asked for */
  async open(start: URL | string, stopAt: (url: URL) => boolean = () => false): Promise<Visit> {
    const way: URL[] = [];
    for (let url = new URL(start); way.length < REDIRECTS_MAX; ) {
      way.push(url);
      if (stopAt(url)) return { url, status: 0, text: '', way };
      const response = await this.fetch(url);
      const location = response.headers.get('location');
      if (location === null) return { url, status: response.status, text: await response.text(), way };
      url = new URL(location, url);
    }
    throw new Error(`more than ${REDIRECTS_MAX} redirects: ${way.join(' ')}`);
  }
}
