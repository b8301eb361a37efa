// What `norm.wgsl` does, one row a workgroup, and the result in bytes as well. A thread does a block of 32.
override COLUMNS: u32;
override EPSILON: f32;
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> numbers: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> scales: array<vec2<u32>>;

const THREADS = 128u;
var<workgroup> squares: array<f32, 32>;  // of each subgroup, which has 4 threads at least

fn mean_square(thread: u32, subgroup: u32, subgroups: u32, lane: u32, row: u32) -> f32 {
  let blocks = COLUMNS / 32u;
  var sum = 0.0;
  for (var b = thread; b < blocks; b += THREADS) {
    // Read at once, and again, from nearby, where they are needed next.
    var fours: array<vec4<f32>, 8>;
    for (var n = 0u; n < 8u; n++) { fours[n] = x[(row * blocks + b) * 8u + n]; }
    for (var n = 0u; n < 8u; n++) { sum += dot(fours[n], fours[n]); }
  }
  sum = subgroupAdd(sum);
  if (lane == 0u) { squares[subgroup] = sum; }
  workgroupBarrier();
  sum = 0.0;
  for (var s = 0u; s < subgroups; s++) { sum += squares[s]; }
  return sum / f32(COLUMNS);
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let row = group.x;
  let scale = 1.0 / sqrt(mean_square(thread, subgroup, subgroups, lane, row) + EPSILON);
  let blocks = COLUMNS / 32u;
  for (var b = thread; b < blocks; b += THREADS) {
    var fours: array<vec4<f32>, 8>;
    for (var n = 0u; n < 8u; n++) {
      fours[n] = x[(row * blocks + b) * 8u + n] * scale * weight[b * 8u + n];
      y[(row * blocks + b) * 8u + n] = fours[n];
    }
    put_block(row, b, blocks, quantise(fours));
  }
}
