import { bytes, float, integer, message, minusOne } from './protobuf.mjs';

/** Numbers of `TensorProto.DataType`. */
const TYPES = { float: 1, int8: 3, int64: 7 };
const IR_VERSION = 8;
const OPSET = 17;

function attribute(name, value) {
  const [FLOAT, INT, STRING, INTS] = [1, 2, 3, 7]; // AttributeProto.AttributeType
  const named = bytes(1, name);
  if (Array.isArray(value)) return [named, ...value.map((one) => signed(8, one)), integer(20, INTS)];
  if (typeof value === 'string') return [named, bytes(4, value), integer(20, STRING)];
  if (typeof value === 'object') return [named, float(2, value.float), integer(20, FLOAT)];
  return [named, signed(3, value), integer(20, INT)];
}

function signed(field, value) {
  return value === -1 ? minusOne(field) : integer(field, value);
}

function rawBytes(data) {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** A graph of ONNX operators that is written once, in the order of its calls. */
export class OnnxGraph {
  #nodes = [];
  #constants = new Map();
  #count = 0;

  /** Adds a tensor that belongs to the model. @returns its name */
  constant(name, type, shape, data) {
    if (!this.#constants.has(name)) {
      const dims = shape.map((size) => integer(1, size));
      this.#constants.set(name, [...dims, integer(2, TYPES[type]), bytes(8, name), bytes(9, rawBytes(data))]);
    }
    return name;
  }

  /** A float constant without dimensions. */
  scalar(value) {
    return this.constant(`scalar_${value}`, 'float', [], Float32Array.of(value));
  }

  /** A list of 64-bit integers: axes and shapes. */
  integers(...values) {
    return this.constant(
      `integers_${values.join('_')}`,
      'int64',
      [values.length],
      BigInt64Array.from(values.map(BigInt)),
    );
  }

  /** Adds an operator. @returns the names of its outputs, or the only one's */
  node(operator, inputs, attributes = {}, outputs = 1) {
    this.#count += 1;
    const names = Array.from({ length: outputs }, (_, index) => `${operator}_${this.#count}_${index}`);
    this.#nodes.push([
      ...inputs.map((name) => bytes(1, name)),
      ...names.map((name) => bytes(2, name)),
      bytes(3, `${operator}_${this.#count}`),
      bytes(4, operator),
      ...Object.entries(attributes).map(([name, value]) => message(5, attribute(name, value))),
    ]);
    return outputs === 1 ? names[0] : names;
  }

  /** The bytes of the model file. Sizes of inputs and outputs are numbers, or names for those that vary. */
  toModel({ input, output }) {
    const { name, from, shape } = output;
    this.#nodes.push([bytes(1, from), bytes(2, name), bytes(3, name), bytes(4, 'Identity')]);
    const graph = [
      ...this.#nodes.map((node) => message(1, node)),
      bytes(2, 'sentence-embedding'),
      ...[...this.#constants.values()].map((tensor) => message(5, tensor)),
      message(11, valueInfo(input.name, 'int64', input.shape)),
      message(12, valueInfo(name, 'float', shape)),
    ];
    return Buffer.concat([
      integer(1, IR_VERSION),
      bytes(2, 'agent-fleet-platform'),
      message(7, graph),
      message(8, [bytes(1, ''), integer(2, OPSET)]),
    ]);
  }
}

function valueInfo(name, type, shape) {
  const dims = shape.map((size) => message(1, [typeof size === 'number' ? integer(1, size) : bytes(2, size)]));
  const tensorType = [integer(1, TYPES[type]), message(2, dims)];
  return [bytes(1, name), message(2, [message(1, tensorType)])];
}
