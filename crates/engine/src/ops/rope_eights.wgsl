// A texel is written at once, so a lane does eight numbers of a head and the eight that are half a head further on.
fn put(work: Work, n: u32, v: Eight) {
  if (work.head < HEADS) {
    put_query(work, n, v);
  } else {
    let at = work.cell + vec2<u32>(key_place(work.position, n), 0u);
    textureStore(keys, at, first_texel(v));
    if (TEXELS == 2u) { textureStore(keys, at + vec2<u32>(1u, 0u), second_texel(v)); }
  }
}

fn put_value(work: Work, n: u32, v: Eight) {
  let at = work.cell + vec2<u32>(value_place(work.position, n), 0u);
  textureStore(values, at, first_texel(v));
  if (TEXELS == 2u) { textureStore(values, at + vec2<u32>(1u, 0u), second_texel(v)); }
}

fn put_head(work: Work) {
  let half = HEAD_DIM / 16u;
  if (work.head >= HEADS + KV_HEADS) {
    for (var n = work.lane; n < 2u * half; n += work.lanes) { put_value(work, n, eight(work, n)); }
    return;
  }
  if (NEIGHBOURS) {
    for (var n = work.lane; n < 2u * half; n += work.lanes) { put(work, n, turned_neighbours(work, n)); }
    return;
  }
  for (var n = work.lane; n < half; n += work.lanes) {
    let turns = turns_of(work, n);
    let cosines = turns.cosines; let sines = turns.sines;
    let a = normed(work, n);
    let b = normed(work, half + n);
    put(work, n, Eight(a.low * cosines.low - b.low * sines.low, a.high * cosines.high - b.high * sines.high));
    put(work, half + n, Eight(b.low * cosines.low + a.low * sines.low, b.high * cosines.high + a.high * sines.high));
  }
}
