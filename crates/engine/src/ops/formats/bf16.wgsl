// The upper halves of 32-bit floats, eight in a block.
const FOURS = 2u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = false;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>()); }
fn four(block: Block, n: u32) -> vec4<f32> {
  let pairs = select(block.numbers.xy, block.numbers.zw, n == 1u);
  let upper = vec4<u32>(pairs.x << 16u, pairs.x & 0xffff0000u, pairs.y << 16u, pairs.y & 0xffff0000u);
  return bitcast<vec4<f32>>(upper);
}
fn factors(b: u32, part: u32) -> vec2<f32> { return vec2<f32>(1.0, 0.0); }
