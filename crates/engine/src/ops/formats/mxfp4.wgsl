// 32 floats of 4 bits: a sign, two bits of exponent and one of mantissa; a byte each, the exponent of what they are scaled with.
const FOURS = 8u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = false;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>()); }
fn bytes(block: Block, n: u32) -> u32 {
  let codes = unpack4xU8(low_bits(block.numbers, n));
  // Twice the magnitudes: 0 1 2 3 4 6 8 12.
  let twice = vec4<i32>((vec4<u32>(0xc8643210u) >> (4u * (codes & vec4<u32>(7u)))) & vec4<u32>(15u));
  return pack4xI8(select(twice, -twice, (codes & vec4<u32>(8u)) != vec4<u32>()));
}
fn factors(b: u32, part: u32) -> vec2<f32> {
  let exponent = (scale_word(b >> 2u) >> (8u * (b & 3u))) & 255u;
  // Half of two to the exponent; below 2^-126 it has no exponent of its own.
  let scale = select(bitcast<f32>((exponent - 1u) << 23u), bitcast<f32>(0x00200000u << exponent), exponent < 2u);
  return vec2<f32>(scale, 0.0);
}
