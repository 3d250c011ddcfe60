import { cleanUp } from '../../../setup/clean-up.js';
import { TcpProxy } from '../../../setup/platform/tcp-proxy.js';

const CHECK_MS = 200;
/** The failed checks after which a node gets no further connections. */
const FALL = 2;

/** A TCP balancer that checks `/health` of each node, and gives each new connection to the next of those that are in service. */
export class CheckedBalancer {
  readonly #failures: Map<number, number>;
  readonly #proxy: TcpProxy;

  private constructor(ports: readonly number[], proxy: TcpProxy) {
    this.#failures = new Map(ports.map((port) => [port, FALL]));
    this.#proxy = proxy;
    const checks = setInterval(() => void this.#check(), CHECK_MS);
    cleanUp(() => clearInterval(checks));
  }

  static async of(ports: readonly number[]): Promise<CheckedBalancer> {
    let turn = 0;
    const next = (): number => {
      const { inService } = balancer;
      return inService[turn++ % inService.length] ?? 0;
    };
    const balancer = new CheckedBalancer(ports, await TcpProxy.to(next));
    return balancer;
  }

  get port(): number {
    return this.#proxy.port;
  }

  get inService(): number[] {
    return [...this.#failures].filter(([, failures]) => failures < FALL).map(([port]) => port);
  }

  async #check(): Promise<void> {
    for (const port of this.#failures.keys()) {
      const isHealthy = await fetch(`http://127.0.0.1:${port}/health`, {
        signal: AbortSignal.timeout(CHECK_MS * 5),
      }).then(
        ({ status }) => status === 200,
        () => false,
      );
      this.#failures.set(port, isHealthy ? 0 : (this.#failures.get(port) ?? 0) + 1);
    }
  }
}
