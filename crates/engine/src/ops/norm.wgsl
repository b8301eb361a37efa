// y[r] = x[r] / sqrt(mean(x[r]²) + epsilon) * weight, one row per subgroup.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override COLUMNS: u32;
override EPSILON: f32;
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(num_subgroups) subgroups: u32, @builtin(subgroup_size) lanes: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let row = group.x * subgroups + subgroup;
  if (row >= i.rows) { return; }
  let fours = COLUMNS / 4u;
  var sum = 0.0;
  for (var c = lane; c < fours; c += lanes) {
    let v = x[row * fours + c];
    sum += dot(v, v);
  }
  let scale = 1.0 / sqrt(subgroupAdd(sum) / f32(COLUMNS) + EPSILON);
  for (var c = lane; c < fours; c += lanes) {
    write_four(row, c, fours, x[row * fours + c] * scale * weight[c]);
  }
}
