// Keys and values that lie in eights: a lane sums up eight of every 64 numbers.
fn prepare_queries(lane: u32) {}
fn read_scales(cell: vec2<u32>, rest: u32, lane: u32) {}
fn join_sums() {}

fn key_eight(cell: vec2<u32>, place: u32) -> Eight {
  let at = cell + vec2<u32>(place, 0u);
  let first = textureLoad(keys, at);
  if (TEXELS == 1u) { return unpack_eight(first, vec4<u32>()); }
  return unpack_eight(first, textureLoad(keys, at + vec2<u32>(1u, 0u)));
}

fn value_eight(cell: vec2<u32>, place: u32) -> Eight {
  let at = cell + vec2<u32>(place, 0u);
  let first = textureLoad(values, at);
  if (TEXELS == 1u) { return unpack_eight(first, vec4<u32>()); }
  return unpack_eight(first, textureLoad(values, at + vec2<u32>(1u, 0u)));
}

fn score(g: u32, n: u32, cell: vec2<u32>, lane: u32) {
  let eight = g * 8u + n;
  if (eight >= HEAD_DIM / 8u) { return; }
  score_eight(g, n, key_eight(cell, key_place(lane, eight)), key_eight(cell, key_place(lane + 8u, eight)));
}

fn score_part(g: u32, cell: vec2<u32>, lane: u32) {
  if (g * 64u >= HEAD_DIM) { return; }
  score(g, 0u, cell, lane); score(g, 1u, cell, lane); score(g, 2u, cell, lane); score(g, 3u, cell, lane);
  score(g, 4u, cell, lane); score(g, 5u, cell, lane); score(g, 6u, cell, lane); score(g, 7u, cell, lane);
}

fn score_all(cell: vec2<u32>, lane: u32) {
  score_part(0u, cell, lane); score_part(1u, cell, lane); score_part(2u, cell, lane); score_part(3u, cell, lane);
}

// The lane's eight of the g-th 64 numbers of two values, times the heads' weights of their positions, `v` and `w`.
fn sum(g: u32, cell: vec2<u32>, first: u32, second: u32, lane: u32, v: vec4<f32>, w: vec4<f32>) {
  if (g * 64u >= HEAD_DIM) { return; }
  let a = value_eight(cell, value_place(first, own_eight(g, lane)));
  let b = value_eight(cell, value_place(second, own_eight(g, lane)));
  add(g * 8u, a, b, v.x, w.x);
  if (TOGETHER > 1u) { add(g * 8u + 2u, a, b, v.y, w.y); }
  if (TOGETHER > 2u) { add(g * 8u + 4u, a, b, v.z, w.z); }
  if (TOGETHER > 3u) { add(g * 8u + 6u, a, b, v.w, w.w); }
}

// Of two neighbours in a block, of which lanes weighed the first eight positions (`w0`) and the others (`w1`). Positions past `rest` are
// not read, for nobody knows what is there: their weights are zero.
fn sum_two(cell: vec2<u32>, position: u32, rest: u32, lane: u32, w0: vec4<f32>, w1: vec4<f32>) {
  let first = min(position, rest);
  let second = min(position + 1u, rest);
  let weights = select(w1, w0, position < 8u);
  let v = subgroupShuffle(weights, position % 8u);
  let w = subgroupShuffle(weights, position % 8u + 1u);
  sum(0u, cell, first, second, lane, v, w); sum(1u, cell, first, second, lane, v, w);
  sum(2u, cell, first, second, lane, v, w); sum(3u, cell, first, second, lane, v, w);
}

fn shrink(g: u32, by: vec4<f32>) {
  sums[g * 8u] *= by.x; sums[g * 8u + 1u] *= by.x; sums[g * 8u + 2u] *= by.y; sums[g * 8u + 3u] *= by.y;
  sums[g * 8u + 4u] *= by.z; sums[g * 8u + 5u] *= by.z; sums[g * 8u + 6u] *= by.w; sums[g * 8u + 7u] *= by.w;
}

fn shrink_sums(by: vec4<f32>) { shrink(0u, by); shrink(1u, by); shrink(2u, by); shrink(3u, by); }

// The lane's eight of the g-th 64 numbers of a head.
fn store(g: u32, h: u32, work: Work, total: f32) {
  let n = g * 8u + work.lane;
  let head = work.whole + h;
  if (n >= HEAD_DIM / 8u || head > work.last) { return; }
  store_four(work, head, 2u * n, sums[g * 8u + h * 2u], total);
  store_four(work, head, 2u * n + 1u, sums[g * 8u + h * 2u + 1u], total);
}

fn store_sums(h: u32, work: Work, total: f32) {
  store(0u, h, work, total); store(1u, h, work, total); store(2u, h, work, total); store(3u, h, work, total);
}
