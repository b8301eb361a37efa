// How pairs of numbers get into the cache.
@group(0) @binding(5) var<storage, read_write> keys: array<Pair>;
@group(0) @binding(6) var<storage, read_write> values: array<Pair>;

fn put_pair(work: Work, n: u32, pair: vec2<f32>) {
  keys[(work.begin + key_place(work.position, n / 2u)) * 2u + n % 2u] = pack_pair(pair);
}

fn put_key(work: Work) {
  let half = HEAD_DIM / 4u;
  if (NEIGHBOURS) {
    for (var n = work.lane; n < 2u * half; n += work.lanes) { put_pair(work, n, turned_neighbours(work, n)); }
    return;
  }
  for (var n = work.lane; n < half; n += work.lanes) {
    let turned = turned_halves(work, n);
    put_pair(work, n, turned.xy);
    put_pair(work, half + n, turned.zw);
  }
}

fn put_value(work: Work) {
  for (var n = work.lane; n < HEAD_DIM / 2u; n += work.lanes) {
    values[(work.begin + value_place(work.position, n / 2u)) * 2u + n % 2u] = pack_pair(numbers(work, n));
  }
}
