// 32 signed bytes; a scale each.
const FOURS = 8u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = false;
fn load(b: u32) -> Block { return Block(word(2u * b), word(2u * b + 1u)); }
fn bytes(block: Block, n: u32) -> u32 {
  if (n < 4u) { return block.numbers[n]; }
  return block.more[n - 4u];
}
fn factors_of(scale: f32) -> vec2<f32> { return vec2<f32>(scale, 0.0); }
