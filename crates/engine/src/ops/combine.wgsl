// Attention's splits of a row, combined: each one's sum counts by what its own softmax is of the whole. A thread does four
// numbers of a head. Rows of one split are left as they are.
struct Immediates { rows: u32, first: u32 }
var<immediate> i: Immediates;
override HEADS: u32;
override HEAD_DIM: u32;
@group(0) @binding(0) var<storage, read> shares: array<vec4<f32>>;  // sums, then peak and total
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;    // token, slot, position

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let fours = HEAD_DIM / 4u;
  let own = group.x * 64u + thread;
  let row = i.first + group.y;
  if (own >= HEADS * fours || row >= i.rows) { return; }
  let splits = split_count(rows[row].z + 1u);
  if (splits == 1u) { return; }
  let stride = HEADS * (fours + 1u);
  let base = group.y * SPLITS * stride + own / fours * (fours + 1u);
  var peak = -1e30;
  for (var s = 0u; s < splits; s++) { peak = max(peak, shares[base + s * stride + fours].x); }
  var total = 0.0;
  var sum = vec4<f32>();
  for (var s = 0u; s < splits; s++) {
    let at = base + s * stride;
    let weight = exp(shares[at + fours].x - peak);
    total += shares[at + fours].y * weight;
    sum += shares[at + own % fours] * weight;
  }
  write_four(row, own, HEADS * fours, sum / total);
}
