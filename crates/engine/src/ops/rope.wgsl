// Per row and head: queries are normalised and rotated in place; keys are normalised, rotated and put into
// the cache; values are put into the cache. One subgroup a head. Rotation pairs number n with n + HEAD_DIM / 2,
// and then two pairs go together; or number 2n with 2n + 1.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override EPSILON: f32;
override BLOCK: u32;
override BLOCKS: u32;  // blocks in a slot's table
override NORMED: bool;
override BIASED: bool;
override NEIGHBOURS: bool;
@group(0) @binding(0) var<storage, read_write> qkv: array<vec2<f32>>;
// The weights of the norms of queries and of keys, if NORMED; then the biases of all heads, if BIASED.
@group(0) @binding(1) var<storage, read> adjustments: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> rotations: array<vec4<f32>>;  // cosine, sine, twice
@group(0) @binding(3) var<storage, read> rows: array<vec4<u32>>;       // token, slot, position
@group(0) @binding(4) var<storage, read> blocks: array<u32>;
@group(0) @binding(5) var<storage, read_write> keys: array<Pair>;
@group(0) @binding(6) var<storage, read_write> values: array<Pair>;

// Two numbers of a head, with their biases.
fn numbers(row: u32, head: u32, n: u32) -> vec2<f32> {
  let own = head * (HEAD_DIM / 2u) + n;
  var v = qkv[row * (HEADS + 2u * KV_HEADS) * (HEAD_DIM / 2u) + own];
  if (BIASED) { v += adjustments[own + select(0u, HEAD_DIM, NORMED)]; }
  return v;
}

// The same, times what normalises them.
fn normed(row: u32, head: u32, n: u32, scale: f32) -> vec2<f32> {
  var v = numbers(row, head, n);
  if (NORMED) { v *= scale * adjustments[n + select(0u, HEAD_DIM / 2u, head >= HEADS)]; }
  return v;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(num_subgroups) subgroups: u32, @builtin(subgroup_size) lanes: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let head = group.x * subgroups + subgroup;
  let row = group.y;
  if (head >= HEADS + 2u * KV_HEADS || row >= i.rows) { return; }
  let slot = rows[row].y;
  let position = rows[row].z;
  let twos = HEAD_DIM / 2u;
  let base = (row * (HEADS + 2u * KV_HEADS) + head) * twos;
  let block = blocks[slot * BLOCKS + position / BLOCK];
  let kv_head = (head - HEADS) % KV_HEADS;  // of keys and values only
  let begin = (block * KV_HEADS + kv_head) * BLOCK * twos;
  if (head >= HEADS + KV_HEADS) {
    for (var n = lane; n < twos; n += lanes) {
      values[begin + value_place(position, n / 2u) * 2u + n % 2u] = pack_pair(numbers(row, head, n));
    }
    return;
  }
  var scale = 1.0;
  if (NORMED) {
    var sum = 0.0;
    for (var n = lane; n < twos; n += lanes) {
      let v = numbers(row, head, n);
      sum += dot(v, v);
    }
    scale = 1.0 / sqrt(subgroupAdd(sum) / f32(HEAD_DIM) + EPSILON);
  }
  let key = head >= HEADS;
  let half = twos / 2u;
  if (NEIGHBOURS) {
    for (var n = lane; n < twos; n += lanes) {
      let turns = rotations[position * half + n / 2u];
      let turn = select(turns.xy, turns.zw, (n & 1u) == 1u);
      let v = normed(row, head, n, scale);
      let turned = vec2<f32>(v.x * turn.x - v.y * turn.y, v.y * turn.x + v.x * turn.y);
      if (key) { keys[begin + key_place(position, n / 2u) * 2u + n % 2u] = pack_pair(turned); } else { qkv[base + n] = turned; }
    }
    return;
  }
  for (var n = lane; n < half; n += lanes) {
    let turn = rotations[position * half + n];
    let a = normed(row, head, n, scale);
    let b = normed(row, head, half + n, scale);
    let c = a * turn.xz - b * turn.yw;
    let d = b * turn.xz + a * turn.yw;
    if (key) {
      keys[begin + key_place(position, n / 2u) * 2u + n % 2u] = pack_pair(c);
      let other = half + n;
      keys[begin + key_place(position, other / 2u) * 2u + other % 2u] = pack_pair(d);
    } else {
      qkv[base + n] = c;
      qkv[base + half + n] = d;
    }
  }
}
