// 32 numbers of 4 bits; a scale and a minimum each.
const FOURS = 8u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = true;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>()); }
fn bytes(block: Block, n: u32) -> u32 { return low_bits(block.numbers, n); }
fn factors(b: u32, part: u32) -> vec2<f32> { return unpack2x16float(scale_word(b)); }
