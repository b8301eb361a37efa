// What `rope.wgsl` does, for software drivers with a cache in textures. Queries go into a texture of their own. How the rest is done depends
// on what a texel has: `rope_eights.wgsl` or `rope_sixteens.wgsl`. There a driver goes through all branches, whoever takes them: so what
// queries, keys and values have in common is written once. One subgroup a head.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;  // a multiple of 16
override EPSILON: f32;
override BLOCK: u32;
override BLOCKS: u32;  // blocks in a slot's table
override NORMED: bool;
override BIASED: bool;
override NEIGHBOURS: bool;
@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> adjustments: array<vec4<f32>>;  // as in `rope.wgsl`
@group(0) @binding(2) var<storage, read> rotations: array<vec4<f32>>;    // cosine, sine, twice
@group(0) @binding(3) var<storage, read> rows: array<vec4<u32>>;         // token, slot, position
@group(0) @binding(4) var<storage, read> blocks: array<u32>;
@group(0) @binding(5) var queries: texture_storage_2d<rgba32uint, write>;
@group(0) @binding(6) var keys: texture_storage_2d<rgba32uint, write>;
@group(0) @binding(7) var values: texture_storage_2d<rgba32uint, write>;

// What a subgroup is about: a head at a position, what normalises it, and where its head and block begin in the cache.
struct Work { row: u32, head: u32, position: u32, cell: vec2<u32>, lane: u32, lanes: u32, scale: f32 }

// Four numbers of a head, with their biases.
fn numbers(work: Work, n: u32) -> vec4<f32> {
  let own = work.head * (HEAD_DIM / 4u) + n;
  var v = qkv[work.row * (HEADS + 2u * KV_HEADS) * (HEAD_DIM / 4u) + own];
  if (BIASED) { v += adjustments[own + select(0u, HEAD_DIM / 2u, NORMED)]; }
  return v;
}

fn eight(work: Work, n: u32) -> Eight { return Eight(numbers(work, 2u * n), numbers(work, 2u * n + 1u)); }

// The same, times what normalises them.
fn normed(work: Work, n: u32) -> Eight {
  var v = eight(work, n);
  if (NORMED) {
    let own = 2u * n + select(0u, HEAD_DIM / 4u, work.head >= HEADS);
    v.low *= work.scale * adjustments[own];
    v.high *= work.scale * adjustments[own + 1u];
  }
  return v;
}

// What normalises a head.
fn norm_scale(work: Work) -> f32 {
  if (!NORMED) { return 1.0; }
  var sum = 0.0;
  for (var n = work.lane; n < HEAD_DIM / 8u; n += work.lanes) {
    let v = eight(work, n);
    sum += dot(v.low, v.low) + dot(v.high, v.high);
  }
  return 1.0 / sqrt(subgroupAdd(sum) / f32(HEAD_DIM) + EPSILON);
}

// Two pairs of neighbours, turned.
fn turned(v: vec4<f32>, turns: vec4<f32>) -> vec4<f32> {
  return v * turns.xxzz + v.yxwz * turns.yyww * vec4<f32>(-1.0, 1.0, -1.0, 1.0);
}

// The n-th eight, turned.
fn turned_neighbours(work: Work, n: u32) -> Eight {
  let v = normed(work, n);
  let at = work.position * (HEAD_DIM / 4u) + 2u * n;
  return Eight(turned(v.low, rotations[at]), turned(v.high, rotations[at + 1u]));
}

// The cosines and sines of the n-th eight of a half.
struct Turns { cosines: Eight, sines: Eight }
fn turns_of(work: Work, n: u32) -> Turns {
  let at = work.position * (HEAD_DIM / 4u) + 4u * n;
  let t0 = rotations[at]; let t1 = rotations[at + 1u]; let t2 = rotations[at + 2u]; let t3 = rotations[at + 3u];
  let cosines = Eight(vec4<f32>(t0.xz, t1.xz), vec4<f32>(t2.xz, t3.xz));
  return Turns(cosines, Eight(vec4<f32>(t0.yw, t1.yw), vec4<f32>(t2.yw, t3.yw)));
}

fn put_query(work: Work, n: u32, v: Eight) {
  let at = vec2<u32>(work.head * (HEAD_DIM / 4u) + 2u * n, work.row);
  textureStore(queries, at, bitcast<vec4<u32>>(v.low));
  textureStore(queries, at + vec2<u32>(1u, 0u), bitcast<vec4<u32>>(v.high));
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
  let cell = block_origin(blocks[rows[row].y * BLOCKS + position / BLOCK], (head - HEADS) % KV_HEADS);
  var work = Work(row, head, position, cell, lane, lanes, 1.0);
  work.scale = norm_scale(work);
  put_head(work);
}
