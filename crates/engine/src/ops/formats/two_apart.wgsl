// The factors of two blocks, wherever they lie.
fn two_factors(b: u32, c: u32, part: u32) -> vec4<f32> { return vec4<f32>(factors(b, part), factors(c, part)); }
