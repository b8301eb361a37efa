// Attention of one row and head over all cached positions up to the row's own: one workgroup, tiles of 64
// positions, a running softmax. Scores: one position a thread. Sums: a thread owns four numbers of the head
// for every so-manieth position, and the threads' shares are added up at the end.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override BLOCK: u32;
override BLOCKS: u32;  // blocks in a slot's table
@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> values: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> rows: array<vec4<u32>>;  // token, slot, position
@group(0) @binding(4) var<storage, read> blocks: array<u32>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;

const TILE = 64u;
var<workgroup> query: array<vec4<f32>, 64>;
var<workgroup> weights: array<f32, 64>;
var<workgroup> peaks: array<f32, 16>;   // one a subgroup, which has 4 threads at least
var<workgroup> totals: array<f32, 16>;
var<workgroup> shares: array<vec4<f32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let head = group.x;
  let row = group.y;
  let fours = HEAD_DIM / 4u;
  let kv_head = head / (HEADS / KV_HEADS);
  let table = rows[row].y * BLOCKS;
  let length = rows[row].z + 1u;
  if (thread < fours) {
    query[thread] = qkv[(row * (HEADS + 2u * KV_HEADS) + head) * fours + thread] / sqrt(f32(HEAD_DIM));
  }
  workgroupBarrier();
  let teams = TILE / fours;
  let team = thread / fours;
  let own = thread % fours;
  var peak = -1e30;
  var total = 0.0;
  var sum = vec4<f32>();
  for (var begin = 0u; begin < length; begin += TILE) {
    let position = begin + thread;
    var score = -1e30;
    if (position < length) {
      let cell = (blocks[table + position / BLOCK] * KV_HEADS + kv_head) * BLOCK + position % BLOCK;
      score = 0.0;
      for (var n = 0u; n < fours; n++) { score += dot(query[n], keys[cell * fours + n]); }
    }
    let high = subgroupMax(score);
    if (lane == 0u) { peaks[subgroup] = high; }
    workgroupBarrier();
    var top = peak;
    for (var s = 0u; s < subgroups; s++) { top = max(top, peaks[s]); }
    let weight = select(0.0, exp(score - top), position < length);
    weights[thread] = weight;
    let part = subgroupAdd(weight);
    if (lane == 0u) { totals[subgroup] = part; }
    workgroupBarrier();
    let shrink = exp(peak - top);
    total *= shrink;
    for (var s = 0u; s < subgroups; s++) { total += totals[s]; }
    sum *= shrink;
    if (team < teams) {
      for (var t = team; t < min(TILE, length - begin); t += teams) {
        let at = begin + t;
        let cell = (blocks[table + at / BLOCK] * KV_HEADS + kv_head) * BLOCK + at % BLOCK;
        sum += weights[t] * values[cell * fours + own];
      }
    }
    peak = top;
    workgroupBarrier();
  }
  shares[thread] = sum;
  workgroupBarrier();
  if (thread < fours) {
    for (var t = 1u; t < teams; t++) { sum += shares[t * fours + thread]; }
    y[(row * HEADS + head) * fours + thread] = sum / total;
  }
}
