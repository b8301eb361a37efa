// Reads a buffer once and does next to nothing with it: the measure of what a shader can read at all.
@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
override THREADS: u32;
override EACH: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  var folded = vec4<u32>();
  for (var n = 0u; n < EACH; n++) { folded ^= x[at.x + n * THREADS]; }
  if ((folded.x ^ folded.y ^ folded.z ^ folded.w) == 0x9e3779b9u) { y[0] = at.x; }
}
