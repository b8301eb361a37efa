// Keys and values in bytes, as `cache/texels_q8.wgsl` has them: a lane sums up sixteen of every 128 numbers. Where a head has too few for
// eight lanes, several positions are summed up side by side, and joined at the end. Of four bytes the second, third and fourth stand for 256
// times and so on what they are, and the first three are too large by 128. Queries are made smaller by as much before, and what scores
// have too much by 128 is known before, too: it depends on the query alone. Of values both are mended at the end.
var<private> beyond: array<vec4<f32>, 8>;  // what scores have too much of each 32 numbers, one number a head
var<private> heaped: array<vec4<f32>, 2>;  // all that values were multiplied with so far, of each 128 numbers, one number a head
var<private> scales: array<vec4<f32>, 4>;  // of the values at the lane's two positions, of each 128 numbers
const MASKS = vec4<u32>(0xffu, 0xff00u, 0xff0000u, 0xff000000u);
const UNITS = vec4<f32>(1.0, 0.00390625, 1.52587890625e-5, 5.9604644775390625e-8);
const MOVED = vec4<f32>(128.0, 128.0, 128.0, 0.0);

fn spread(word: u32) -> vec4<f32> { return vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word) & MASKS)); }

fn sixteens() -> u32 { return HEAD_DIM / 16u; }

// So many lanes do one position's numbers.
fn lanes_each() -> u32 { return select(select(select(8u, 4u, sixteens() <= 4u), 2u, sixteens() <= 2u), 1u, sixteens() == 1u); }

fn moved(q: Eight) -> f32 { return dot(q.low, MOVED) + dot(q.high, MOVED); }

fn lowered(q: Eight) -> Eight { return Eight(q.low * UNITS, q.high * UNITS); }

fn prepare(g: u32, lane: u32) {
  if (g * 64u >= HEAD_DIM) { return; }
  var own = vec4<f32>(moved(q0[g]), 0.0, 0.0, 0.0);
  q0[g] = lowered(q0[g]);
  if (TOGETHER > 1u) { own.y = moved(q1[g]); q1[g] = lowered(q1[g]); }
  if (TOGETHER > 2u) { own.z = moved(q2[g]); q2[g] = lowered(q2[g]); }
  if (TOGETHER > 3u) { own.w = moved(q3[g]); q3[g] = lowered(q3[g]); }
  // Four lanes have 32 numbers.
  let counted = select(vec4<f32>(), own, g * 8u + lane < HEAD_DIM / 8u);
  let two = counted + subgroupShuffleXor(counted, 1u);
  let four = two + subgroupShuffleXor(two, 2u);
  beyond[2u * g] = subgroupShuffle(four, 0u);
  beyond[2u * g + 1u] = subgroupShuffle(four, 4u);
}

fn prepare_queries(lane: u32) { prepare(0u, lane); prepare(1u, lane); prepare(2u, lane); prepare(3u, lane); }

fn score_sixteen(n: u32, cell: vec2<u32>, lane: u32) {
  if (n >= sixteens()) { return; }
  let near = textureLoad(keys, cell + vec2<u32>(key_place(lane, n), 0u));
  let far = textureLoad(keys, cell + vec2<u32>(key_place(lane + 8u, n), 0u));
  let first = n % 4u * 2u;
  score_eight(n / 4u, first, Eight(spread(near.x), spread(near.y)), Eight(spread(far.x), spread(far.y)));
  score_eight(n / 4u, first + 1u, Eight(spread(near.z), spread(near.w)), Eight(spread(far.z), spread(far.w)));
}

// The n-th 32 numbers of the lane's two keys, which have those scales.
fn score_scaled(n: u32, cell: vec2<u32>, lane: u32, near_scale: f32, far_scale: f32) {
  if (n * 32u >= HEAD_DIM) { return; }
  let near = s0;
  let far = s1;
  s0 = -beyond[n];
  s1 = -beyond[n];
  score_sixteen(2u * n, cell, lane); score_sixteen(2u * n + 1u, cell, lane);
  s0 = near + s0 * near_scale;
  s1 = far + s1 * far_scale;
}

fn score_part(part: u32, cell: vec2<u32>, lane: u32) {
  if (part * 128u >= HEAD_DIM) { return; }
  let near = bitcast<vec4<f32>>(textureLoad(keys, cell + vec2<u32>(scale_place(lane, part), 0u)));
  let far = bitcast<vec4<f32>>(textureLoad(keys, cell + vec2<u32>(scale_place(lane + 8u, part), 0u)));
  score_scaled(part * 4u, cell, lane, near.x, far.x); score_scaled(part * 4u + 1u, cell, lane, near.y, far.y);
  score_scaled(part * 4u + 2u, cell, lane, near.z, far.z); score_scaled(part * 4u + 3u, cell, lane, near.w, far.w);
}

fn score_all(cell: vec2<u32>, lane: u32) { score_part(0u, cell, lane); score_part(1u, cell, lane); }

fn value_scales(cell: vec2<u32>, position: u32, part: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(textureLoad(values, cell + vec2<u32>(scale_place(position, part), 0u)));
}

// Positions past `rest` are not read, for nobody knows what is there: their weights are zero.
fn read_scales(cell: vec2<u32>, rest: u32, lane: u32) {
  scales[0] = value_scales(cell, min(lane, rest), 0u);
  scales[1] = value_scales(cell, min(lane + 8u, rest), 0u);
  if (HEAD_DIM <= 128u) { return; }
  scales[2] = value_scales(cell, min(lane, rest), 1u);
  scales[3] = value_scales(cell, min(lane + 8u, rest), 1u);
}

// The scale of the lane's numbers of the value at a position, which another lane has.
fn scale_of(known: vec4<f32>, position: u32, lane: u32) -> f32 {
  let source = position % 8u;
  let x = subgroupShuffle(known.x, source);
  if (lanes_each() <= 2u) { return x; }
  let own = lane % lanes_each() / 2u;
  let low = select(x, subgroupShuffle(known.y, source), (own & 1u) == 1u);
  if (lanes_each() == 4u) { return low; }
  let high = select(subgroupShuffle(known.z, source), subgroupShuffle(known.w, source), (own & 1u) == 1u);
  return select(low, high, own >= 2u);
}

fn add_sixteen(at: u32, a: vec4<u32>, b: vec4<u32>, weight_a: f32, weight_b: f32) {
  add(at, Eight(spread(a.x), spread(a.y)), Eight(spread(b.x), spread(b.y)), weight_a, weight_b);
  add(at + 2u, Eight(spread(a.z), spread(a.w)), Eight(spread(b.z), spread(b.w)), weight_a, weight_b);
}

// The lane's sixteen of a part's 128 numbers of two values, times the heads' weights of their positions, `v` and `w`.
fn sum(part: u32, cell: vec2<u32>, first: u32, second: u32, lane: u32, v: vec4<f32>, w: vec4<f32>) {
  let n = min(part * 8u + lane % lanes_each(), sixteens() - 1u);
  let a = textureLoad(values, cell + vec2<u32>(value_place(first, n), 0u));
  let b = textureLoad(values, cell + vec2<u32>(value_place(second, n), 0u));
  add_sixteen(part * 16u, a, b, v.x, w.x);
  if (TOGETHER > 1u) { add_sixteen(part * 16u + 4u, a, b, v.y, w.y); }
  if (TOGETHER > 2u) { add_sixteen(part * 16u + 8u, a, b, v.z, w.z); }
  if (TOGETHER > 3u) { add_sixteen(part * 16u + 12u, a, b, v.w, w.w); }
  heaped[part] += v + w;
}

// Of as many positions as all lanes can do, and as many after them, in a block of which lanes weighed the first eight positions (`w0`)
// and the others (`w1`).
fn sum_two(cell: vec2<u32>, position: u32, rest: u32, lane: u32, w0: vec4<f32>, w1: vec4<f32>) {
  let beside = 8u / lanes_each();
  if (position % (2u * beside) != 0u) { return; }
  let first = position + select(lane / lanes_each(), 0u, beside == 1u);
  let second = first + beside;
  let v = subgroupShuffle(select(w1, w0, position < 8u), first % 8u);
  let w = subgroupShuffle(select(w1, w0, position + beside < 8u), second % 8u);
  let near = select(1u, 0u, position < 8u);
  let far = select(1u, 0u, position + beside < 8u);
  let a = min(first, rest);
  let b = min(second, rest);
  sum(0u, cell, a, b, lane, v * scale_of(scales[near], first, lane), w * scale_of(scales[far], second, lane));
  if (HEAD_DIM <= 128u) { return; }
  sum(1u, cell, a, b, lane, v * scale_of(scales[2u + near], first, lane), w * scale_of(scales[2u + far], second, lane));
}

fn shrink_head(at: u32, by: f32) { sums[at] *= by; sums[at + 1u] *= by; sums[at + 2u] *= by; sums[at + 3u] *= by; }

fn shrink(part: u32, by: vec4<f32>) {
  shrink_head(part * 16u, by.x); shrink_head(part * 16u + 4u, by.y);
  shrink_head(part * 16u + 8u, by.z); shrink_head(part * 16u + 12u, by.w);
  heaped[part] *= by;
}

fn shrink_sums(by: vec4<f32>) { shrink(0u, by); shrink(1u, by); }

// A number of all lanes that do the same numbers, added up.
fn joined(v: vec4<f32>) -> vec4<f32> {
  var all = v + subgroupShuffleXor(v, 4u);
  if (lanes_each() <= 2u) { all += subgroupShuffleXor(all, 2u); }
  if (lanes_each() == 1u) { all += subgroupShuffleXor(all, 1u); }
  return all;
}

fn join(at: u32) {
  sums[at] = joined(sums[at]); sums[at + 1u] = joined(sums[at + 1u]);
  sums[at + 2u] = joined(sums[at + 2u]); sums[at + 3u] = joined(sums[at + 3u]);
}

fn join_sums() {
  if (lanes_each() == 8u) { return; }
  join(0u);
  if (TOGETHER > 1u) { join(4u); }
  if (TOGETHER > 2u) { join(8u); }
  if (TOGETHER > 3u) { join(12u); }
  heaped[0] = joined(heaped[0]);
}

// The lane's sixteen of a part's 128 numbers of a head.
fn store(part: u32, h: u32, work: Work, total: f32) {
  let n = part * 8u + work.lane;
  let head = work.whole + h;
  if (work.lane >= lanes_each() || n >= sixteens() || head > work.last) { return; }
  let too_much = MOVED * heaped[part][h];
  let at = part * 16u + h * 4u;
  store_four(work, head, 4u * n, sums[at] * UNITS - too_much, total);
  store_four(work, head, 4u * n + 1u, sums[at + 1u] * UNITS - too_much, total);
  store_four(work, head, 4u * n + 2u, sums[at + 2u] * UNITS - too_much, total);
  store_four(work, head, 4u * n + 3u, sums[at + 3u] * UNITS - too_much, total);
}

fn store_sums(h: u32, work: Work, total: f32) {
  store(0u, h, work, total);
  if (HEAD_DIM > 128u) { store(1u, h, work, total); }
}
