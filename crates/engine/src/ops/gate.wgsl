// y[r][c] = silu(x[r][c]) * x[r][COLUMNS + c]: the gated unit of the feed-forward network.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override COLUMNS: u32;
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let fours = COLUMNS / 4u;
  let four = at.x;
  let row = at.y;
  if (four >= fours || row >= i.rows) { return; }
  let gate = x[row * 2u * fours + four];
  let up = x[row * 2u * fours + fours + four];
  write_four(row, four, fours, gate / (1.0 + exp(-gate)) * up);
}
