import { OnnxGraph } from './onnx.mjs';

const LAYERS = 6;
const HEADS = 12;
const WIDTH = 384;
const EPSILON = 1e-12;
/**
 * Weights have seven bits: with eight, processors without VNNI instructions saturate sums of products, and give other vectors than
 * those with them.
 */
const WEIGHT_MAX = 63;
const EMBEDDING_MAX = 127;

/**
 * Writes all-MiniLM-L6-v2 as an ONNX file: BERT, mean over the tokens, length 1. Weights of matrices are 8-bit integers with one scale a
 * column, word embeddings with one scale a row. Activations are quantised as they come, with one scale a tensor: the model takes one text
 * at a time, because texts that share a batch would change each other's vectors.
 * @param tensor reads the weights by their names in the safetensors file
 * @returns {Buffer} the same bytes for the same weights
 */
export function minilmModel(tensor) {
  const graph = new OnnxGraph();
  let hidden = embeddings(graph, tensor);
  for (let layer = 0; layer < LAYERS; layer++) {
    const name = (part) => `encoder.layer.${layer}.${part}`;
    const attended = attention(graph, tensor, hidden, name);
    hidden = normalized(graph, tensor, name('attention.output.LayerNorm'), graph.node('Add', [attended, hidden]));
    const inner = gelu(graph, dense(graph, tensor, name('intermediate.dense'), hidden));
    const outer = dense(graph, tensor, name('output.dense'), inner);
    hidden = normalized(graph, tensor, name('output.LayerNorm'), graph.node('Add', [outer, hidden]));
  }
  return graph.toModel({
    input: { name: 'input_ids', shape: [1, 'tokens'] },
    output: { name: 'embedding', from: pooled(graph, hidden), shape: [1, WIDTH] },
  });
}

function embeddings(graph, tensor) {
  const { shape, data } = tensor('embeddings.word_embeddings.weight');
  const [rows, columns] = shape;
  const quantized = new Int8Array(data.length);
  const scales = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    const values = data.subarray(row * columns, (row + 1) * columns);
    const scale = Math.fround(largest(values) / EMBEDDING_MAX) || 1;
    scales[row] = scale;
    for (let column = 0; column < columns; column++)
      quantized[row * columns + column] = roundEven(values[column] / scale);
  }
  const table = graph.constant('word_embeddings', 'int8', shape, quantized);
  const rowScales = graph.constant('word_embedding_scales', 'float', [rows, 1], scales);
  const words = graph.node('Mul', [
    graph.node('Cast', [graph.node('Gather', [table, 'input_ids'])], { to: 1 }),
    graph.node('Gather', [rowScales, 'input_ids']),
  ]);
  const positions = weights(graph, tensor, 'embeddings.position_embeddings.weight');
  const length = graph.node('Slice', [graph.node('Shape', ['input_ids']), graph.integers(1), graph.integers(2)]);
  const used = graph.node('Slice', [positions, graph.integers(0), length, graph.integers(0)]);
  const segment = tensor('embeddings.token_type_embeddings.weight').data.slice(0, WIDTH);
  const type = graph.constant('segment_embedding', 'float', [WIDTH], segment);
  const sum = graph.node('Add', [graph.node('Add', [words, used]), type]);
  return normalized(graph, tensor, 'embeddings.LayerNorm', sum);
}

function weights(graph, tensor, name) {
  const { shape, data } = tensor(name);
  return graph.constant(name, 'float', shape, data);
}

function normalized(graph, tensor, name, input) {
  const scale = weights(graph, tensor, `${name}.weight`);
  return graph.node('LayerNormalization', [input, scale, weights(graph, tensor, `${name}.bias`)], {
    axis: -1,
    epsilon: { float: EPSILON },
  });
}

function attention(graph, tensor, hidden, name) {
  const perHead = (part) => {
    const projected = dense(graph, tensor, name(`attention.self.${part}`), hidden);
    const split = graph.node('Reshape', [projected, graph.integers(0, 0, HEADS, WIDTH / HEADS)]);
    return graph.node('Transpose', [split], { perm: part === 'key' ? [0, 2, 3, 1] : [0, 2, 1, 3] });
  };
  const scores = graph.node('MatMul', [perHead('query'), perHead('key')]);
  const scaled = graph.node('Mul', [scores, graph.scalar(1 / Math.sqrt(WIDTH / HEADS))]);
  const shares = graph.node('Softmax', [scaled], { axis: -1 });
  const mixed = graph.node('Transpose', [graph.node('MatMul', [shares, perHead('value')])], { perm: [0, 2, 1, 3] });
  const joined = graph.node('Reshape', [mixed, graph.integers(0, 0, WIDTH)]);
  return dense(graph, tensor, name('attention.output.dense'), joined);
}

function gelu(graph, input) {
  const inner = graph.node('Erf', [graph.node('Mul', [input, graph.scalar(Math.SQRT1_2)])]);
  const weighted = graph.node('Mul', [input, graph.node('Add', [inner, graph.scalar(1)])]);
  return graph.node('Mul', [weighted, graph.scalar(0.5)]);
}

/** `input · weightᵀ + bias` in 8-bit integers. */
function dense(graph, tensor, name, input) {
  const { quantized, scales, rows, columns } = quantizedColumns(tensor(`${name}.weight`));
  const matrix = graph.constant(`${name}.quantized`, 'int8', [columns, rows], quantized);
  const [values, scale, zero] = graph.node('DynamicQuantizeLinear', [input], {}, 3);
  const product = graph.node('Cast', [graph.node('MatMulInteger', [values, matrix, zero])], { to: 1 });
  const scaleOfColumn = graph.constant(`${name}.scales`, 'float', [rows], scales);
  const scaled = graph.node('Mul', [product, graph.node('Mul', [scale, scaleOfColumn])]);
  return graph.node('Add', [scaled, weights(graph, tensor, `${name}.bias`)]);
}

/** The transposed matrix in integers, with one scale for each of its columns. */
function quantizedColumns({ shape, data }) {
  const [rows, columns] = shape;
  const quantized = new Int8Array(data.length);
  const scales = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    const values = data.subarray(row * columns, (row + 1) * columns);
    const scale = Math.fround(largest(values) / WEIGHT_MAX) || 1;
    scales[row] = scale;
    for (let column = 0; column < columns; column++) quantized[column * rows + row] = roundEven(values[column] / scale);
  }
  return { quantized, scales, rows, columns };
}

function largest(values) {
  let most = 0;
  for (const value of values) most = Math.max(most, Math.abs(value));
  return most;
}

function roundEven(value) {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

/** The mean of all tokens, with length 1. */
function pooled(graph, hidden) {
  const mean = graph.node('ReduceMean', [hidden], { axes: [1], keepdims: 0 });
  return graph.node('Div', [mean, graph.node('ReduceL2', [mean], { axes: [1], keepdims: 1 })]);
}
