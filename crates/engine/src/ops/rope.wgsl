// Per row and head: queries are normalised and rotated in place; keys are normalised, rotated and put into
// the cache; values are put into the cache. `rope_pairs.wgsl` puts pairs of numbers there, `rope_scaled.wgsl` bytes. One subgroup a head.
// Rotation pairs number n with n + HEAD_DIM / 2, and then two pairs go together; or number 2n with 2n + 1.
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

// What a subgroup is about: a head at a position, what normalises it, and where its numbers begin in the cache, in fours.
struct Work { row: u32, head: u32, position: u32, begin: u32, lane: u32, lanes: u32, scale: f32 }

// Two numbers of a head, with their biases.
fn numbers(work: Work, n: u32) -> vec2<f32> {
  let own = work.head * (HEAD_DIM / 2u) + n;
  var v = qkv[work.row * (HEADS + 2u * KV_HEADS) * (HEAD_DIM / 2u) + own];
  if (BIASED) { v += adjustments[own + select(0u, HEAD_DIM, NORMED)]; }
  return v;
}

// The same, times what normalises them.
fn normed(work: Work, n: u32) -> vec2<f32> {
  var v = numbers(work, n);
  if (NORMED) { v *= work.scale * adjustments[n + select(0u, HEAD_DIM / 2u, work.head >= HEADS)]; }
  return v;
}

// What normalises a head.
fn norm_scale(work: Work) -> f32 {
  if (!NORMED) { return 1.0; }
  var sum = 0.0;
  for (var n = work.lane; n < HEAD_DIM / 2u; n += work.lanes) {
    let v = numbers(work, n);
    sum += dot(v, v);
  }
  return 1.0 / sqrt(subgroupAdd(sum) / f32(HEAD_DIM) + EPSILON);
}

// The n-th two numbers, turned.
fn turned_neighbours(work: Work, n: u32) -> vec2<f32> {
  let turns = rotations[work.position * (HEAD_DIM / 4u) + n / 2u];
  let turn = select(turns.xy, turns.zw, (n & 1u) == 1u);
  let v = normed(work, n);
  return vec2<f32>(v.x * turn.x - v.y * turn.y, v.y * turn.x + v.x * turn.y);
}

// The n-th two numbers and the two that are half a head further on, turned.
fn turned_halves(work: Work, n: u32) -> vec4<f32> {
  let turn = rotations[work.position * (HEAD_DIM / 4u) + n];
  let a = normed(work, n);
  let b = normed(work, HEAD_DIM / 4u + n);
  return vec4<f32>(a * turn.xz - b * turn.yw, b * turn.xz + a * turn.yw);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(num_subgroups) subgroups: u32, @builtin(subgroup_size) lanes: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let head = group.x * subgroups + subgroup;
  let row = group.y;
  if (head >= HEADS + 2u * KV_HEADS || row >= i.rows) { return; }
  let position = rows[row].z;
  // Of keys and values only.
  let begin = (blocks[rows[row].y * BLOCKS + position / BLOCK] * KV_HEADS + (head - HEADS) % KV_HEADS) * BLOCK * head_fours();
  var work = Work(row, head, position, begin, lane, lanes, 1.0);
  if (head >= HEADS + KV_HEADS) {
    put_value(work);
    return;
  }
  work.scale = norm_scale(work);
  if (head >= HEADS) {
    put_key(work);
    return;
  }
  let base = (row * (HEADS + 2u * KV_HEADS) + head) * (HEAD_DIM / 2u);
  let half = HEAD_DIM / 4u;
  if (NEIGHBOURS) {
    for (var n = lane; n < 2u * half; n += lanes) { qkv[base + n] = turned_neighbours(work, n); }
    return;
  }
  for (var n = lane; n < half; n += lanes) {
    let turned = turned_halves(work, n);
    qkv[base + n] = turned.xy;
    qkv[base + half + n] = turned.zw;
  }
}
