// Attention of one row over one split of the cached positions up to its own, for TOGETHER heads that share keys and
// values: one workgroup of eight lanes, tiles of TILE positions, a running softmax. For software drivers, where a read
// costs as much as several products, wherever it goes: keys and values are read once for all of the heads, and what all
// lanes need each reads a part of, and hands it round. Scores: lanes do positions, two of a block of 16 each. Sums:
// lanes do numbers, four each. A row of one split is done here; the others' shares are combined by another kernel.
var<workgroup> query: array<vec4<f32>, 256>;  // of each head in turn, 64 with zeros behind its own
var<workgroup> weights: array<f32, 1024>;     // of each head in turn, TILE
var<workgroup> sums: array<vec4<f32>, 256>;   // of each head in turn, 64
var<private> s0: vec4<f32>; var<private> s1: vec4<f32>;  // scores of a lane's two positions, one number a head
var<private> a0: vec4<f32>; var<private> a1: vec4<f32>; var<private> a2: vec4<f32>; var<private> a3: vec4<f32>;

// Four numbers of the queries, times those of the lane's two keys.
fn score(at: u32, q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>) {
  let k0 = unpack_four(keys[at]);
  let k1 = unpack_four(keys[at + 8u]);
  s0.x += dot(q0, k0); s1.x += dot(q0, k1);
  if (TOGETHER > 1u) { s0.y += dot(q1, k0); s1.y += dot(q1, k1); }
  if (TOGETHER > 2u) { s0.z += dot(q2, k0); s1.z += dot(q2, k1); }
  if (TOGETHER > 3u) { s0.w += dot(q3, k0); s1.w += dot(q3, k1); }
}

// The lane's four numbers of one value, times the heads' weights of its position.
fn sum(at: u32, w0: f32, w1: f32, w2: f32, w3: f32) {
  let value = unpack_four(values[at]);
  a0 += w0 * value;
  if (TOGETHER > 1u) { a1 += w1 * value; }
  if (TOGETHER > 2u) { a2 += w2 * value; }
  if (TOGETHER > 3u) { a3 += w3 * value; }
}

// The scores of a block's positions: `cell` is its first key, and the lane's own further on.
fn score_block(cell: u32, lane: u32) {
  let last = HEAD_DIM / 4u - 1u;  // the queries' numbers past their end are zeros
  s0 = vec4<f32>(); s1 = vec4<f32>();
  for (var n = 0u; n <= last; n += 8u) {
    let v0 = query[n + lane]; var v1 = vec4<f32>(); var v2 = vec4<f32>(); var v3 = vec4<f32>();
    if (TOGETHER > 1u) { v1 = query[64u + n + lane]; }
    if (TOGETHER > 2u) { v2 = query[128u + n + lane]; }
    if (TOGETHER > 3u) { v3 = query[192u + n + lane]; }
    score(cell + n * BLOCK,
          subgroupBroadcast(v0, 0u), subgroupBroadcast(v1, 0u), subgroupBroadcast(v2, 0u), subgroupBroadcast(v3, 0u));
    score(cell + min(n + 1u, last) * BLOCK,
          subgroupBroadcast(v0, 1u), subgroupBroadcast(v1, 1u), subgroupBroadcast(v2, 1u), subgroupBroadcast(v3, 1u));
    score(cell + min(n + 2u, last) * BLOCK,
          subgroupBroadcast(v0, 2u), subgroupBroadcast(v1, 2u), subgroupBroadcast(v2, 2u), subgroupBroadcast(v3, 2u));
    score(cell + min(n + 3u, last) * BLOCK,
          subgroupBroadcast(v0, 3u), subgroupBroadcast(v1, 3u), subgroupBroadcast(v2, 3u), subgroupBroadcast(v3, 3u));
    score(cell + min(n + 4u, last) * BLOCK,
          subgroupBroadcast(v0, 4u), subgroupBroadcast(v1, 4u), subgroupBroadcast(v2, 4u), subgroupBroadcast(v3, 4u));
    score(cell + min(n + 5u, last) * BLOCK,
          subgroupBroadcast(v0, 5u), subgroupBroadcast(v1, 5u), subgroupBroadcast(v2, 5u), subgroupBroadcast(v3, 5u));
    score(cell + min(n + 6u, last) * BLOCK,
          subgroupBroadcast(v0, 6u), subgroupBroadcast(v1, 6u), subgroupBroadcast(v2, 6u), subgroupBroadcast(v3, 6u));
    score(cell + min(n + 7u, last) * BLOCK,
          subgroupBroadcast(v0, 7u), subgroupBroadcast(v1, 7u), subgroupBroadcast(v2, 7u), subgroupBroadcast(v3, 7u));
  }
}

// Adds a block's values, weighted: `cell` is the lane's part of the first, `width` how far the next is, and `last` the last
// of its positions that counts.
fn sum_block(cell: u32, width: u32, first: u32, last: u32, lane: u32) {
  let u0 = weights[first + lane]; let v0 = weights[first + 8u + lane];
  var u1 = 0.0; var v1 = 0.0; var u2 = 0.0; var v2 = 0.0; var u3 = 0.0; var v3 = 0.0;
  if (TOGETHER > 1u) { u1 = weights[TILE + first + lane]; v1 = weights[TILE + first + 8u + lane]; }
  if (TOGETHER > 2u) { u2 = weights[2u * TILE + first + lane]; v2 = weights[2u * TILE + first + 8u + lane]; }
  if (TOGETHER > 3u) { u3 = weights[3u * TILE + first + lane]; v3 = weights[3u * TILE + first + 8u + lane]; }
  sum(cell,
      subgroupBroadcast(u0, 0u), subgroupBroadcast(u1, 0u), subgroupBroadcast(u2, 0u), subgroupBroadcast(u3, 0u));
  sum(cell + min(1u, last) * width,
      subgroupBroadcast(u0, 1u), subgroupBroadcast(u1, 1u), subgroupBroadcast(u2, 1u), subgroupBroadcast(u3, 1u));
  sum(cell + min(2u, last) * width,
      subgroupBroadcast(u0, 2u), subgroupBroadcast(u1, 2u), subgroupBroadcast(u2, 2u), subgroupBroadcast(u3, 2u));
  sum(cell + min(3u, last) * width,
      subgroupBroadcast(u0, 3u), subgroupBroadcast(u1, 3u), subgroupBroadcast(u2, 3u), subgroupBroadcast(u3, 3u));
  sum(cell + min(4u, last) * width,
      subgroupBroadcast(u0, 4u), subgroupBroadcast(u1, 4u), subgroupBroadcast(u2, 4u), subgroupBroadcast(u3, 4u));
  sum(cell + min(5u, last) * width,
      subgroupBroadcast(u0, 5u), subgroupBroadcast(u1, 5u), subgroupBroadcast(u2, 5u), subgroupBroadcast(u3, 5u));
  sum(cell + min(6u, last) * width,
      subgroupBroadcast(u0, 6u), subgroupBroadcast(u1, 6u), subgroupBroadcast(u2, 6u), subgroupBroadcast(u3, 6u));
  sum(cell + min(7u, last) * width,
      subgroupBroadcast(u0, 7u), subgroupBroadcast(u1, 7u), subgroupBroadcast(u2, 7u), subgroupBroadcast(u3, 7u));
  sum(cell + min(8u, last) * width,
      subgroupBroadcast(v0, 0u), subgroupBroadcast(v1, 0u), subgroupBroadcast(v2, 0u), subgroupBroadcast(v3, 0u));
  sum(cell + min(9u, last) * width,
      subgroupBroadcast(v0, 1u), subgroupBroadcast(v1, 1u), subgroupBroadcast(v2, 1u), subgroupBroadcast(v3, 1u));
  sum(cell + min(10u, last) * width,
      subgroupBroadcast(v0, 2u), subgroupBroadcast(v1, 2u), subgroupBroadcast(v2, 2u), subgroupBroadcast(v3, 2u));
  sum(cell + min(11u, last) * width,
      subgroupBroadcast(v0, 3u), subgroupBroadcast(v1, 3u), subgroupBroadcast(v2, 3u), subgroupBroadcast(v3, 3u));
  sum(cell + min(12u, last) * width,
      subgroupBroadcast(v0, 4u), subgroupBroadcast(v1, 4u), subgroupBroadcast(v2, 4u), subgroupBroadcast(v3, 4u));
  sum(cell + min(13u, last) * width,
      subgroupBroadcast(v0, 5u), subgroupBroadcast(v1, 5u), subgroupBroadcast(v2, 5u), subgroupBroadcast(v3, 5u));
  sum(cell + min(14u, last) * width,
      subgroupBroadcast(v0, 6u), subgroupBroadcast(v1, 6u), subgroupBroadcast(v2, 6u), subgroupBroadcast(v3, 6u));
  sum(cell + min(15u, last) * width,
      subgroupBroadcast(v0, 7u), subgroupBroadcast(v1, 7u), subgroupBroadcast(v2, 7u), subgroupBroadcast(v3, 7u));
}

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
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
  for (var h = 0u; h < TOGETHER; h++) {
    let own = row * (HEADS + 2u * KV_HEADS) + kv_head * sharing + min(head + h, sharing - 1u);
    for (var n = lane; n < (fours + 7u) / 8u * 8u; n += 8u) {
      var numbers = vec4<f32>();
      if (n < fours) { numbers = qkv[own * fours + n] / sqrt(f32(HEAD_DIM)); }
      query[h * 64u + n] = numbers;
    }
  }
  workgroupBarrier();
  var peak = vec4<f32>(-1e30);
  var total = vec4<f32>();
  for (var begin = start; begin < end; begin += TILE) {
    let count = min(TILE, end - begin);
    var top = peak;
    for (var t = 0u; t < count; t += BLOCK) {
      score_block((blocks[table + (begin + t) / BLOCK] * KV_HEADS + kv_head) * BLOCK * fours + lane, lane);
      if (t + lane >= count) { s0 = vec4<f32>(-1e30); }
      if (t + lane + 8u >= count) { s1 = vec4<f32>(-1e30); }
      for (var h = 0u; h < TOGETHER; h++) {
        weights[h * TILE + t + lane] = s0[h];
        weights[h * TILE + t + lane + 8u] = s1[h];
      }
      top = max(top, max(s0, s1));
    }
    top = subgroupMax(top);
    let shrink = exp(peak - top);
    peak = top;
    total *= shrink;
    for (var t = lane; t < (count + BLOCK - 1u) / BLOCK * BLOCK; t += 8u) {
      for (var h = 0u; h < TOGETHER; h++) {
        let weight = exp(weights[h * TILE + t] - top[h]);
        weights[h * TILE + t] = weight;
        total[h] += weight;
      }
    }
    workgroupBarrier();
    for (var n = 0u; n < fours; n += 8u) {
      let width = value_width(n);
      let own = value_place(0u, n) + min(lane, width - 1u);
      a0 = vec4<f32>(); a1 = vec4<f32>(); a2 = vec4<f32>(); a3 = vec4<f32>();
      for (var t = 0u; t < count; t += BLOCK) {
        let cell = (blocks[table + (begin + t) / BLOCK] * KV_HEADS + kv_head) * BLOCK * fours;
        sum_block(cell + own, width, t, count - t - 1u, lane);
      }
      if (begin > start) {
        a0 += sums[n + lane] * shrink.x; a1 += sums[64u + n + lane] * shrink.y;
        a2 += sums[128u + n + lane] * shrink.z; a3 += sums[192u + n + lane] * shrink.w;
      }
      sums[n + lane] = a0; sums[64u + n + lane] = a1; sums[128u + n + lane] = a2; sums[192u + n + lane] = a3;
    }
    workgroupBarrier();
  }
  total = subgroupAdd(total);
  for (var h = 0u; h < min(TOGETHER, sharing - head); h++) {
    let whole = kv_head * sharing + head + h;
    let share = ((group.y * SPLITS + split) * HEADS + whole) * (fours + 1u);
    for (var n = lane; n < fours; n += 8u) {
      let own = sums[h * 64u + n];
      if (split_count(length) == 1u) {
        y[(row * HEADS + whole) * fours + n] = own / total[h];
      } else {
        shares[share + n] = own;
      }
    }
    if (lane == 0u && split_count(length) > 1u) { shares[share + fours] = vec4<f32>(peak[h], total[h], 0.0, 0.0); }
  }
}
