// Weights in textures, TEXTURE_ROW bytes in a row.
@group(0) @binding(0) var numbers: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(1) var scales: texture_storage_2d<r32uint, read>;
const VECTORS = TEXTURE_ROW / 16u;
const WORDS = TEXTURE_ROW / 4u;
fn word(n: u32) -> vec4<u32> { return textureLoad(numbers, vec2<u32>(n % VECTORS, n / VECTORS)); }
fn scale_word(n: u32) -> u32 { return textureLoad(scales, vec2<u32>(n % WORDS, n / WORDS)).x; }
