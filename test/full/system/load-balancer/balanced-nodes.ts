import { freePort } from '../../../../embedded/free-port.js';
import { redisServer } from '../../../messages/bus/redis-server.js';
import { type SharedPlatform, startPlatform } from '../../../setup/platform/platform.js';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';
import { TcpProxy } from '../../../setup/platform/tcp-proxy.js';

/** Two nodes behind a load balancer, which gives each connection to the next one, whatever becomes of it. */
export class BalancedNodes {
  readonly shared: SharedPlatform;
  readonly a: TestPlatform;
  readonly b: TestPlatform;
  readonly #ports: number[];
  /** The balancer, and a way to each node that passes by it. */
  readonly #ways: TcpProxy[];
  readonly #balance: (ports: number[]) => void;

  private constructor(
    shared: SharedPlatform,
    b: TestPlatform,
    ports: number[],
    ways: TcpProxy[],
    balance: (ports: number[]) => void,
  ) {
    this.shared = shared;
    this.a = shared.platform;
    this.b = b;
    this.#ports = ports;
    this.#ways = ways;
    this.#balance = balance;
  }

  static async start(): Promise<BalancedNodes> {
    const redis = await redisServer();
    const ports = [await freePort(), await freePort()];
    let inService = ports;
    let turn = 0;
    const balancer = await TcpProxy.to(() => inService[turn++ % inService.length] ?? 0);
    const direct = await Promise.all(ports.map((port) => TcpProxy.to(() => port)));
    const own = (index: number) => ({
      FLEET_MESH_PORT: String(ports[index]),
      FLEET_NODE_URL: `https://127.0.0.1:${direct[index]?.port}`,
    });
    const common = { REDIS_URL: redis.url, FLEET_MESH_URL: `https://127.0.0.1:${balancer.port}` };
    const shared = await startPlatform({ ...common, ...own(0) });
    const b = await shared.startPeer({ env: own(1) });
    return new BalancedNodes(shared, b, ports, [balancer, ...direct], (chosen) => {
      inService = chosen;
    });
  }

  /** Lets the balancer give connections to node b alone while this runs. */
  async withOnlyB(connect: () => Promise<unknown>): Promise<void> {
    this.#balance(this.#ports.slice(1));
    await connect();
    this.#balance(this.#ports);
  }

  /** Cuts every connection to the nodes. */
  cut(): void {
    for (const way of this.#ways) way.cut();
  }
}
