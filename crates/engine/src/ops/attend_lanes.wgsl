// Attention of TOGETHER heads of one row, which share their keys and values, over all cached positions up to the
// row's own. One lane does it all, one position after the other, with a running softmax: no barriers, no sums
// across lanes. Keys and values are read once for all of its heads.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override BLOCK: u32;
override BLOCKS: u32;    // blocks in a slot's table
override TOGETHER: u32;  // 1 or HEADS / KV_HEADS
override LANES: u32;     // in a workgroup
@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> values: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> rows: array<vec4<u32>>;  // token, slot, position
@group(0) @binding(4) var<storage, read> blocks: array<u32>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;

// Of every head in turn: its query, the sum of its values, and its softmax so far.
var<private> query: array<vec4<f32>, 32>;
var<private> sum: array<vec4<f32>, 32>;
var<private> peak: array<f32, 32>;
var<private> total: array<f32, 32>;
var<private> score: array<f32, 32>;
var<private> shrink: array<f32, 32>;

// Takes one more position in.
fn take(cell: u32) {
  let fours = HEAD_DIM / 4u;
  for (var h = 0u; h < TOGETHER; h++) { score[h] = 0.0; }
  for (var n = 0u; n < fours; n++) {
    let key = keys[cell + n];
    for (var h = 0u; h < TOGETHER; h++) { score[h] += dot(query[h * fours + n], key); }
  }
  for (var h = 0u; h < TOGETHER; h++) {
    let top = max(peak[h], score[h]);
    shrink[h] = exp(peak[h] - top);
    score[h] = exp(score[h] - top);
    total[h] = total[h] * shrink[h] + score[h];
    peak[h] = top;
  }
  for (var n = 0u; n < fours; n++) {
    let value = values[cell + n];
    for (var h = 0u; h < TOGETHER; h++) {
      sum[h * fours + n] = sum[h * fours + n] * shrink[h] + value * score[h];
    }
  }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let teams = HEADS / TOGETHER;
  let at = (group.y * groups.x + group.x) * LANES + lane;
  let row = at / teams;
  if (row >= i.rows) { return; }
  let head = at % teams * TOGETHER;
  let kv_head = head / (HEADS / KV_HEADS);
  let fours = HEAD_DIM / 4u;
  let source = (row * (HEADS + 2u * KV_HEADS) + head) * fours;
  for (var n = 0u; n < TOGETHER * fours; n++) {
    query[n] = qkv[source + n] / sqrt(f32(HEAD_DIM));
    sum[n] = vec4<f32>();
  }
  for (var h = 0u; h < TOGETHER; h++) { peak[h] = -1e30; total[h] = 0.0; }
  let table = rows[row].y * BLOCKS;
  let length = rows[row].z + 1u;
  for (var begin = 0u; begin < length; begin += BLOCK) {
    let cell = (blocks[table + begin / BLOCK] * KV_HEADS + kv_head) * BLOCK * fours;
    for (var p = 0u; p < min(BLOCK, length - begin); p++) { take(cell + p * fours); }
  }
  let goal = (row * HEADS + head) * fours;
  for (var n = 0u; n < TOGETHER * fours; n++) { y[goal + n] = sum[n] / total[n / fours]; }
}
