// The cache keeps numbers as they are.
alias Pair = vec2<f32>;
alias Four = vec4<f32>;
fn pack_pair(v: vec2<f32>) -> Pair { return v; }
fn unpack_four(v: Four) -> vec4<f32> { return v; }
