// 32-bit floats, four in a block.
const FOURS = 1u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = false;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>()); }
fn four(block: Block, n: u32) -> vec4<f32> { return bitcast<vec4<f32>>(block.numbers); }
fn factors(b: u32, part: u32) -> vec2<f32> { return vec2<f32>(1.0, 0.0); }
