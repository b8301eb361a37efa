// 32 numbers of 4 bits, each the place of its value in a table; a scale each.
const FOURS = 8u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = false;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>()); }
fn bytes(block: Block, n: u32) -> u32 {
  let places = unpack4xU8(low_bits(block.numbers, n));
  // -127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113
  let low = select(vec4<u32>(0xbfad9881u), vec4<u32>(0xf6eaddcfu), (places & vec4<u32>(4u)) != vec4<u32>());
  let high = select(vec4<u32>(0x26190d01u), vec4<u32>(0x71594535u), (places & vec4<u32>(4u)) != vec4<u32>());
  let values = select(low, high, (places & vec4<u32>(8u)) != vec4<u32>());
  return pack4xU8(values >> (8u * (places & vec4<u32>(3u))));
}
fn factors_of(scale: f32) -> vec2<f32> { return vec2<f32>(scale, 0.0); }
