// 32 numbers of 4 bits around 8; a scale each.
const FOURS = 8u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = true;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>()); }
fn bytes(block: Block, n: u32) -> u32 { return low_bits(block.numbers, n); }
fn factors_of(scale: f32) -> vec2<f32> { return scale * vec2<f32>(1.0, -8.0); }
