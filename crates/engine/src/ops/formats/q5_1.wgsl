// 32 numbers of 5 bits; each 32 have a word of fifth bits, a scale and a minimum.
const FOURS = 8u;
const UNIT = 1u;
const PARTS = 1u;
const OFFSET = true;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>(scale_word(2u * b), 0u, 0u, 0u)); }
fn bytes(block: Block, n: u32) -> u32 { return low_bits(block.numbers, n) | fifth_bits(block.more.x, n); }
fn factors(b: u32, part: u32) -> vec2<f32> { return unpack2x16float(scale_word(2u * b + 1u)); }
