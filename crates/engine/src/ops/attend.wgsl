// Attention of one row over one split of the cached positions up to its own, for TOGETHER heads that share keys and
// values: one workgroup, tiles of TILE positions, a running softmax. Scores: one position a thread; what neighbours
// read lies together. Sums: a thread owns four numbers of the heads for every so-manieth position, and the threads'
// shares are added up at the end. A row of one split is done here; the others' shares are combined by another kernel.
const THREADS = 64u;
var<workgroup> query: array<vec4<f32>, 256>;   // of each head in turn, 64 at most
var<workgroup> weights: array<f32, 1024>;      // of each head in turn, TILE
var<workgroup> peaks: array<vec4<f32>, 16>;    // one a subgroup, which has 4 threads at least
var<workgroup> totals: array<vec4<f32>, 16>;
var<workgroup> parts: array<vec4<f32>, 64>;

// Where the keys or values of a position's block begin, in fours.
fn block_at(table: u32, kv_head: u32, position: u32) -> u32 {
  return (blocks[table + position / BLOCK] * KV_HEADS + kv_head) * BLOCK * (HEAD_DIM / 4u);
}

fn scores(cell: u32) -> vec4<f32> {
  var s = vec4<f32>();
  for (var n = 0u; n < HEAD_DIM / 4u; n++) {
    let key = unpack_four(keys[cell + n * BLOCK]);
    s.x += dot(query[n], key);
    if (TOGETHER > 1u) { s.y += dot(query[64u + n], key); }
    if (TOGETHER > 2u) { s.z += dot(query[128u + n], key); }
    if (TOGETHER > 3u) { s.w += dot(query[192u + n], key); }
  }
  return s;
}

@compute @workgroup_size(64)
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
  workgroupBarrier();
  let teams = THREADS / fours;
  let team = thread / fours;
  let own = thread % fours;
  var peak = vec4<f32>(-1e30);
  var total = vec4<f32>();
  var sum0 = vec4<f32>(); var sum1 = vec4<f32>(); var sum2 = vec4<f32>(); var sum3 = vec4<f32>();
  for (var begin = start; begin < end; begin += TILE) {
    let count = min(TILE, end - begin);
    var top = vec4<f32>(-1e30);
    for (var t = thread; t < count; t += THREADS) {
      let at = begin + t;
      let s = scores(block_at(table, kv_head, at) + key_place(at, 0u));
      for (var h = 0u; h < TOGETHER; h++) { weights[h * TILE + t] = s[h]; }
      top = max(top, s);
    }
    top = subgroupMax(top);
    if (lane == 0u) { peaks[subgroup] = top; }
    workgroupBarrier();
    top = peak;
    for (var s = 0u; s < subgroups; s++) { top = max(top, peaks[s]); }
    var part = vec4<f32>();
    for (var t = thread; t < count; t += THREADS) {
      for (var h = 0u; h < TOGETHER; h++) {
        let weight = exp(weights[h * TILE + t] - top[h]);
        weights[h * TILE + t] = weight;
        part[h] += weight;
      }
    }
    part = subgroupAdd(part);
    if (lane == 0u) { totals[subgroup] = part; }
    workgroupBarrier();
    let shrink = exp(peak - top);
    peak = top;
    total *= shrink;
    for (var s = 0u; s < subgroups; s++) { total += totals[s]; }
    sum0 *= shrink.x; sum1 *= shrink.y; sum2 *= shrink.z; sum3 *= shrink.w;
    if (team < teams) {
      for (var t = team; t < count; t += teams) {
        let at = begin + t;
        let value = unpack_four(values[block_at(table, kv_head, at) + value_place(at, own)]);
        sum0 += weights[t] * value;
        if (TOGETHER > 1u) { sum1 += weights[TILE + t] * value; }
        if (TOGETHER > 2u) { sum2 += weights[2u * TILE + t] * value; }
        if (TOGETHER > 3u) { sum3 += weights[3u * TILE + t] * value; }
      }
    }
    workgroupBarrier();
  }
  for (var h = 0u; h < TOGETHER; h++) {
    var sum = sum0;
    if (h == 1u) { sum = sum1; } else if (h == 2u) { sum = sum2; } else if (h == 3u) { sum = sum3; }
    parts[thread] = sum;
    workgroupBarrier();
    let whole = kv_head * sharing + head + h;
    if (thread < fours && head + h < sharing) {
      for (var t = 1u; t < teams; t++) { sum += parts[t * fours + thread]; }
      if (split_count(length) == 1u) {
        y[(row * HEADS + whole) * fours + thread] = sum / total[h];
      } else {
        let share = ((group.y * SPLITS + split) * HEADS + whole) * (fours + 1u);
        shares[share + thread] = sum;
        if (thread == 0u) { shares[share + fours] = vec4<f32>(peak[h], total[h], 0.0, 0.0); }
      }
    }
    workgroupBarrier();
  }
}
