// 16-bit floats, eight in a block.
const FOURS = 2u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = false;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>()); }
fn four(block: Block, n: u32) -> vec4<f32> {
  let pairs = select(block.numbers.xy, block.numbers.zw, n == 1u);
  return vec4<f32>(unpack2x16float(pairs.x), unpack2x16float(pairs.y));
}
fn factors(b: u32, part: u32) -> vec2<f32> { return vec2<f32>(1.0, 0.0); }
