// 32 numbers of 6 bits around 32. Each eight blocks have sixteen words of upper bits, sixteen bytes, and a float: what the byte
// of sixteen numbers is times the float is their scale.
const FOURS = 8u;
const UNIT = 8u;
const PARTS = 2u;
const OFFSET = true;
fn load(b: u32) -> Block {
  let at = (b >> 3u) * 21u + 2u * (b & 7u);
  return Block(word(b), vec4<u32>(scale_word(at), scale_word(at + 1u), 0u, 0u));
}
fn bytes(block: Block, n: u32) -> u32 { return low_bits(block.numbers, n) | upper_bits(block.more, n); }
fn factors(b: u32, part: u32) -> vec2<f32> {
  let at = (b >> 3u) * 21u;
  let byte = 2u * (b & 7u) + part;
  let scale = signed_bytes(scale_word(at + 16u + (byte >> 2u)))[byte & 3u] * unpack2x16float(scale_word(at + 20u)).x;
  return scale * vec2<f32>(1.0, -32.0);
}
