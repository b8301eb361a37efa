// Rows of floats as rows of bytes. A thread does a block.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override COLUMNS: u32;
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> numbers: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<vec2<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let blocks = COLUMNS / 32u;
  let b = at.x;
  let row = at.y;
  if (b >= blocks || row >= i.rows) { return; }
  var fours: array<vec4<f32>, 8>;
  for (var n = 0u; n < 8u; n++) { fours[n] = x[(row * blocks + b) * 8u + n]; }
  put_block(row, b, blocks, quantise(fours));
}
