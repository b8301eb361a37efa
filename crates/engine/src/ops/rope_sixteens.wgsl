// For a cache of bytes: a lane does sixteen numbers, two lanes those with a scale in common, and the first of eight writes all their scales.
fn turned_half(work: Work, n: u32) -> Eight {
  let half = HEAD_DIM / 16u;
  let turns = turns_of(work, n % half);
  let own = normed(work, n);
  let other = normed(work, (n + half) % (2u * half));
  let sign = select(1.0, -1.0, n < half);
  let low = own.low * turns.cosines.low + sign * other.low * turns.sines.low;
  return Eight(low, own.high * turns.cosines.high + sign * other.high * turns.sines.high);
}

fn eight_of(work: Work, n: u32) -> Eight {
  let plain = eight(work, n);
  var turned = Eight();
  if (NEIGHBOURS) { turned = turned_neighbours(work, n); } else { turned = turned_half(work, n); }
  let is_value = work.head >= HEADS + KV_HEADS;
  return Eight(select(turned.low, plain.low, is_value), select(turned.high, plain.high, is_value));
}

// Scales of the four pairs of lanes among eight.
fn scales_of_lanes(scale: u32, lane: u32) -> vec4<u32> {
  let first = lane / 8u * 8u;
  let low = vec2<u32>(subgroupShuffle(scale, first), subgroupShuffle(scale, first + 2u));
  return vec4<u32>(low, subgroupShuffle(scale, first + 4u), subgroupShuffle(scale, first + 6u));
}

fn put_sixteen(work: Work, n: u32, texel: vec4<u32>, scales: vec4<u32>) {
  let behind = work.cell + vec2<u32>(scale_place(work.position, n / 8u), 0u);
  if (work.head < HEADS + KV_HEADS) {
    textureStore(keys, work.cell + vec2<u32>(key_place(work.position, n), 0u), texel);
    if (n % 8u == 0u) { textureStore(keys, behind, scales); }
  } else {
    textureStore(values, work.cell + vec2<u32>(value_place(work.position, n), 0u), texel);
    if (n % 8u == 0u) { textureStore(values, behind, scales); }
  }
}

fn put_head(work: Work) {
  let sixteens = HEAD_DIM / 16u;
  for (var first = 0u; first < sixteens; first += work.lanes) {
    let n = first + work.lane;
    let own = min(n, sixteens - 1u);
    let low = eight_of(work, 2u * own);
    let high = eight_of(work, 2u * own + 1u);
    let most = max(max(largest(low.low), largest(low.high)), max(largest(high.low), largest(high.high)));
    let counted = select(0.0, most, n < sixteens);
    let scale = scale_bits(max(counted, subgroupShuffleXor(counted, 1u)));
    let scales = scales_of_lanes(scale, work.lane);
    if (n < sixteens) {
      if (work.head < HEADS) {
        put_query(work, 2u * n, low);
        put_query(work, 2u * n + 1u, high);
      } else {
        put_sixteen(work, n, pack_sixteen(low, high, scale), scales);
      }
    }
  }
}
