// Numbers in bytes, 32 of a head with a scale in common: the largest of them is 127 of it at most. A scale is the upper half of a float.
const NAN = 0x7fc00000u;
const NOT_FINITE = 3.4028234e38;

// The largest of four numbers without their signs, NOT_FINITE where one is no finite number.
fn largest(v: vec4<f32>) -> f32 {
  let a = abs(v);
  // False for NaN, too, which `max` may pass over.
  return select(NOT_FINITE, max(max(a.x, a.y), max(a.z, a.w)), all(a <= vec4<f32>(3.4e38)));
}

// The bits of the scale of numbers of which that is the largest: rounded up. NaN where one is no finite number.
fn scale_bits(most: f32) -> u32 {
  let up = (bitcast<u32>(most / 127.0) + 0xffffu) & 0xffff0000u;
  return select(up, NAN, most >= NOT_FINITE);
}

// Four numbers as bytes of a word.
fn pack_bytes(v: vec4<f32>, scale: u32) -> u32 {
  let by = bitcast<f32>(scale);
  // Of numbers that are next to nothing nothing is kept. So it is of a scale that is NaN: whatever is multiplied with that is NaN.
  let inverse = select(0.0, 1.0 / by, by > 1e-30);
  return pack4xI8(vec4<i32>(round(v * inverse)));
}
