// 32 numbers of 4 bits; each eight blocks have four words with their scales and minimums.
const FOURS = 8u;
const UNIT = 8u;
const PARTS = 1u;
const OFFSET = true;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>()); }
fn bytes(block: Block, n: u32) -> u32 { return low_bits(block.numbers, n); }
fn factors(b: u32, part: u32) -> vec2<f32> { return six_bits((b >> 3u) * 4u, b & 7u); }
