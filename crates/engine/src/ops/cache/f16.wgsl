// The cache keeps numbers in 16 bits, two in a word. What is larger than they can be is the largest.
alias Pair = u32;
alias Four = vec2<u32>;
fn pack_pair(v: vec2<f32>) -> Pair { return pack2x16float(clamp(v, vec2<f32>(-65504.0), vec2<f32>(65504.0))); }
fn unpack_four(v: Four) -> vec4<f32> { return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)); }
