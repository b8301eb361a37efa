// Numbers as they are.
const TEXELS = 2u;
fn first_texel(eight: Eight) -> vec4<u32> { return bitcast<vec4<u32>>(eight.low); }
fn second_texel(eight: Eight) -> vec4<u32> { return bitcast<vec4<u32>>(eight.high); }
fn unpack_eight(first: vec4<u32>, second: vec4<u32>) -> Eight { return Eight(bitcast<vec4<f32>>(first), bitcast<vec4<f32>>(second)); }
