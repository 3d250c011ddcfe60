/**
 * The part of protobuf's wire format that an ONNX file needs. A message is a list of fields, a field is a Buffer.
 */

const VARINT = 0;
const BYTES = 2;
const FLOAT = 5;

/** @param {number} value an integer, not negative and exact */
function varint(value) {
  const bytes = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest > 0 ? low + 128 : low);
  } while (rest > 0);
  return Buffer.from(bytes);
}

/** A field that holds an integer ≥ 0. */
export function integer(field, value) {
  return Buffer.concat([varint(field * 8 + VARINT), varint(value)]);
}

/** A field that holds the integer -1, which the wire format writes as 2^64 - 1. */
export function minusOne(field) {
  return Buffer.concat([varint(field * 8 + VARINT), Buffer.from([...Array(9).fill(0xff), 0x01])]);
}

/** A field that holds a 32-bit float. */
export function float(field, value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([varint(field * 8 + FLOAT), bytes]);
}

/** A field that holds bytes or text. */
export function bytes(field, value) {
  const content = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([varint(field * 8 + BYTES), varint(content.length), content]);
}

/** A field that holds a message. */
export function message(field, fields) {
  return bytes(field, Buffer.concat(fields));
}
