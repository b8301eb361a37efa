// Attention of one row over one split of the cached positions up to its own, for TOGETHER heads that share keys and
// values: one workgroup, tiles of TILE positions, a running softmax. Scores: one position a thread; what neighbours
// read lies together. Sums: a thread owns four numbers of the heads for every TILE / HEAD_DIM * 4-th position, and the threads'
// shares are added up at the end. The cache was last touched a step ago, so each read takes long: several are under way at once,
// and none waits for another. A row of one split is done here; the others' shares are combined by another kernel.
@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> keys: array<Four>;
@group(0) @binding(2) var<storage, read> values: array<Four>;
const THREADS = TILE;
const AHEAD = 8u;  // reads under way: of a key, as many fours as have a scale in common
var<workgroup> query: array<vec4<f32>, 256>;   // of each head in turn, 64 at most
var<workgroup> weights: array<f32, 1024>;      // of each head in turn, TILE
var<workgroup> peaks: array<vec4<f32>, 64>;    // one a subgroup, which has 4 threads at least
var<workgroup> totals: array<vec4<f32>, 64>;
var<workgroup> parts: array<vec4<u32>, 256>;   // the scales of the tile's values, if SCALED; at the end, floats
var<workgroup> cells: array<u32, TILE / BLOCK>;  // where the keys and values of the tile's blocks begin, in fours

fn add_scores(sums: vec4<f32>, n: u32, key: vec4<f32>, scale: f32) -> vec4<f32> {
  var s = sums;
  s.x += dot(query[n], key) * scale;
  if (TOGETHER > 1u) { s.y += dot(query[64u + n], key) * scale; }
  if (TOGETHER > 2u) { s.z += dot(query[128u + n], key) * scale; }
  if (TOGETHER > 3u) { s.w += dot(query[192u + n], key) * scale; }
  return s;
}

fn scores(cell: u32) -> vec4<f32> {
  let fours = HEAD_DIM / 4u;
  var s = vec4<f32>();
  for (var first = 0u; first < fours; first += AHEAD) {
    var found: array<Four, AHEAD>;
    for (var n = 0u; n < AHEAD; n++) { found[n] = keys[cell + min(first + n, fours - 1u) * BLOCK]; }
    let scale = key_scale(cell, first / AHEAD);
    for (var n = 0u; n < AHEAD; n++) {
      if (first + n < fours) { s = add_scores(s, first + n, unpack_four(found[n]), scale); }
    }
  }
  return s;
}

// The heads' sums of four numbers of the values, each times its weight.
struct Sums { heads: array<vec4<f32>, 4> }

fn add_values(sums: ptr<function, Sums>, team: u32, teams: u32, own: u32, count: u32) {
  for (var first = team; first < count; first += AHEAD * teams) {
    var found: array<Four, AHEAD>;
    for (var n = 0u; n < AHEAD; n++) {
      let t = min(first + n * teams, count - 1u);
      found[n] = values[cells[t / BLOCK] + value_place(t, own)];
    }
    for (var n = 0u; n < AHEAD; n++) {
      let t = first + n * teams;
      if (t < count) {
        let value = unpack_four(found[n]);
        var scale = 1.0;
        if (SCALED) { scale = unpack_scale(parts[t][own / 16u], own / 8u); }
        for (var h = 0u; h < 4u; h++) {
          if (h < TOGETHER) { (*sums).heads[h] += weights[h * TILE + t] * scale * value; }
        }
      }
    }
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let row = i.first + group.y;
  let kv_head = group.x / TEAMS % KV_HEADS;
  let split = group.x / (TEAMS * KV_HEADS);
  let length = rows[row].z + 1u;
  let start = split * span(length);
  if (start >= length) { return; }
  let end = min(start + span(length), length);
  let table = rows[row].y * BLOCKS;
  let fours = HEAD_DIM / 4u;
  let sharing = HEADS / KV_HEADS;
  let head = group.x % TEAMS * TOGETHER;  // among those that share
  for (var n = thread; n < TOGETHER * fours; n += THREADS) {
    let own = kv_head * sharing + min(head + n / fours, sharing - 1u);
    let source = (row * (HEADS + 2u * KV_HEADS) + own) * fours + n % fours;
    query[n / fours * 64u + n % fours] = qkv[source] / sqrt(f32(HEAD_DIM));
  }
  let teams = THREADS / fours;
  let team = thread / fours;
  let own = thread % fours;
  var peak = vec4<f32>(-1e30);
  var total = vec4<f32>();
  var sums: Sums;
  for (var begin = start; begin < end; begin += TILE) {
    let count = min(TILE, end - begin);
    if (thread * BLOCK < count) {
      cells[thread] = (blocks[table + begin / BLOCK + thread] * KV_HEADS + kv_head) * BLOCK * head_fours();
    }
    workgroupBarrier();
    var score = vec4<f32>(-1e30);
    if (thread < count) { score = scores(cells[thread / BLOCK] + key_place(thread, 0u)); }
    if (SCALED && thread < count) { parts[thread] = value_scales(cells[thread / BLOCK], thread); }
    let highest = subgroupMax(score);
    if (lane == 0u) { peaks[subgroup] = highest; }
    workgroupBarrier();
    var top = peak;
    for (var s = 0u; s < subgroups; s++) { top = max(top, peaks[s]); }
    var weight = vec4<f32>();
    if (thread < count) { weight = exp(score - top); }
    for (var h = 0u; h < TOGETHER; h++) { weights[h * TILE + thread] = weight[h]; }
    let part = subgroupAdd(weight);
    if (lane == 0u) { totals[subgroup] = part; }
    workgroupBarrier();
    let shrink = exp(peak - top);
    peak = top;
    total *= shrink;
    for (var s = 0u; s < subgroups; s++) { total += totals[s]; }
    for (var h = 0u; h < 4u; h++) { sums.heads[h] *= shrink[h]; }
    if (team < teams) { add_values(&sums, team, teams, own, count); }
    workgroupBarrier();
  }
  for (var h = 0u; h < TOGETHER; h++) {
    var sum = sums.heads[h];
    parts[thread] = bitcast<vec4<u32>>(sum);
    workgroupBarrier();
    let whole = kv_head * sharing + head + h;
    if (thread < fours && head + h < sharing) {
      for (var t = 1u; t < teams; t++) { sum += bitcast<vec4<f32>>(parts[t * fours + thread]); }
      if (split_count(length) == 1u) {
        write_four(row, whole * fours + thread, HEADS * fours, sum / total[h]);
      } else {
        let share = ((group.y * SPLITS + split) * HEADS + whole) * (fours + 1u);
        shares[share + thread] = sum;
        if (thread == 0u) { shares[share + fours] = vec4<f32>(peak[h], total[h], 0.0, 0.0); }
      }
    }
    workgroupBarrier();
  }
}
