// How keys and values get into a cache of bytes. Up to 16 lanes do 64 numbers, whose scales share a word, by fours: first they find the
// largest, then they divide. Numbers are rotated twice for that, which costs less than to keep them.
@group(0) @binding(5) var<storage, read_write> keys: array<Four>;
@group(0) @binding(6) var<storage, read_write> values: array<Four>;

fn turned_two(work: Work, n: u32) -> vec2<f32> {
  if (NEIGHBOURS) { return turned_neighbours(work, n); }
  let half = HEAD_DIM / 4u;
  if (n < half) { return turned_halves(work, n).xy; }
  return turned_halves(work, n - half).zw;
}

// The n-th four numbers as the cache is to have them.
fn four_of(work: Work, n: u32) -> vec4<f32> {
  if (work.head >= HEADS + KV_HEADS) { return vec4<f32>(numbers(work, 2u * n), numbers(work, 2u * n + 1u)); }
  return vec4<f32>(turned_two(work, 2u * n), turned_two(work, 2u * n + 1u));
}

// Of two numbers that every lane has, the largest of so many lanes side by side.
fn largest_of_lanes(own: vec2<f32>, width: u32) -> vec2<f32> {
  var most = max(own, subgroupShuffleXor(own, 1u));
  most = max(most, subgroupShuffleXor(most, 2u));
  if (width > 4u) { most = max(most, subgroupShuffleXor(most, 4u)); }
  if (width > 8u) { most = max(most, subgroupShuffleXor(most, 8u)); }
  return most;
}

// What goes into the cache of the `part`-th 64 numbers: their fours from `own` on, `width` apart, and their scales, if that is the first.
fn put_bytes(work: Work, part: u32, own: u32, width: u32, scales: vec2<u32>) {
  let is_key = work.head < HEADS + KV_HEADS;
  let end = min(part * 16u + 16u, HEAD_DIM / 4u);
  for (var n = part * 16u + own; n < end; n += width) {
    let word = pack_bytes(four_of(work, n), select(scales.y, scales.x, n % 16u < 8u));
    if (is_key) { keys[work.begin + key_place(work.position, n)] = word; } else { values[work.begin + value_place(work.position, n)] = word; }
  }
  if (own > 0u || part * 64u >= HEAD_DIM) { return; }
  let at = work.begin + scale_place(work.position, part);
  if (is_key) { keys[at] = pack_scales(scales); } else { values[at] = pack_scales(scales); }
}

fn put_head(work: Work) {
  let width = min(work.lanes, 16u);
  let own = work.lane % width;
  for (var first = 0u; first * 64u < HEAD_DIM; first += work.lanes / width) {
    let part = first + work.lane / width;
    let end = min(part * 16u + 16u, HEAD_DIM / 4u);
    var most = vec2<f32>();  // of the first 32 of the 64, and of the others
    for (var n = part * 16u + own; n < end; n += width) {
      let size = largest(four_of(work, n));
      most = max(most, select(vec2<f32>(0.0, size), vec2<f32>(size, 0.0), n % 16u < 8u));
    }
    most = largest_of_lanes(most, width);
    put_bytes(work, part, own, width, vec2<u32>(scale_bits(most.x), scale_bits(most.y)));
  }
}

fn put_key(work: Work) { put_head(work); }
fn put_value(work: Work) { put_head(work); }
