// Weights in buffers.
@group(0) @binding(0) var<storage, read> numbers: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
fn word(n: u32) -> vec4<u32> { return numbers[n]; }
fn scale_word(n: u32) -> u32 { return scales[n]; }
