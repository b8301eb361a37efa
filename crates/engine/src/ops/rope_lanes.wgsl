// What `rope.wgsl` does, for software drivers with a cache in textures: a texel is written at once, so a lane does eight numbers of a head
// and the eight that are half a head further on. Queries go into a texture of their own. One subgroup a head.
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

// Four numbers of a head, with their biases.
fn numbers(row: u32, head: u32, n: u32) -> vec4<f32> {
  let own = head * (HEAD_DIM / 4u) + n;
  var v = qkv[row * (HEADS + 2u * KV_HEADS) * (HEAD_DIM / 4u) + own];
  if (BIASED) { v += adjustments[own + select(0u, HEAD_DIM / 2u, NORMED)]; }
  return v;
}

fn eight(row: u32, head: u32, n: u32) -> Eight { return Eight(numbers(row, head, 2u * n), numbers(row, head, 2u * n + 1u)); }

// The same, times what normalises them.
fn normed(row: u32, head: u32, n: u32, scale: f32) -> Eight {
  var v = eight(row, head, n);
  if (NORMED) {
    let own = 2u * n + select(0u, HEAD_DIM / 4u, head >= HEADS);
    v.low *= scale * adjustments[own];
    v.high *= scale * adjustments[own + 1u];
  }
  return v;
}

// Two pairs of neighbours, turned.
fn turned(v: vec4<f32>, turns: vec4<f32>) -> vec4<f32> {
  return v * turns.xxzz + v.yxwz * turns.yyww * vec4<f32>(-1.0, 1.0, -1.0, 1.0);
}

fn store(key: bool, row: u32, head: u32, n: u32, cell: vec2<u32>, position: u32, v: Eight) {
  if (key) {
    let at = cell + vec2<u32>(key_place(position, n), 0u);
    textureStore(keys, at, first_texel(v));
    if (TEXELS == 2u) { textureStore(keys, at + vec2<u32>(1u, 0u), second_texel(v)); }
  } else {
    let at = vec2<u32>(head * (HEAD_DIM / 4u) + 2u * n, row);
    textureStore(queries, at, bitcast<vec4<u32>>(v.low));
    textureStore(queries, at + vec2<u32>(1u, 0u), bitcast<vec4<u32>>(v.high));
  }
}

fn store_value(n: u32, cell: vec2<u32>, position: u32, v: Eight) {
  let at = cell + vec2<u32>(value_place(position, n), 0u);
  textureStore(values, at, first_texel(v));
  if (TEXELS == 2u) { textureStore(values, at + vec2<u32>(1u, 0u), second_texel(v)); }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(num_subgroups) subgroups: u32, @builtin(subgroup_size) lanes: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let head = group.x * subgroups + subgroup;
  let row = group.y;
  if (head >= HEADS + 2u * KV_HEADS || row >= i.rows) { return; }
  let position = rows[row].z;
  let eights = HEAD_DIM / 8u;
  let half = eights / 2u;
  // Of keys and values only.
  let cell = block_origin(blocks[rows[row].y * BLOCKS + position / BLOCK], (head - HEADS) % KV_HEADS);
  if (head >= HEADS + KV_HEADS) {
    for (var n = lane; n < eights; n += lanes) { store_value(n, cell, position, eight(row, head, n)); }
    return;
  }
  var scale = 1.0;
  if (NORMED) {
    var sum = 0.0;
    for (var n = lane; n < eights; n += lanes) {
      let v = eight(row, head, n);
      sum += dot(v.low, v.low) + dot(v.high, v.high);
    }
    scale = 1.0 / sqrt(subgroupAdd(sum) / f32(HEAD_DIM) + EPSILON);
  }
  let key = head >= HEADS;
  let turns = position * (HEAD_DIM / 4u);
  if (NEIGHBOURS) {
    for (var n = lane; n < eights; n += lanes) {
      let v = normed(row, head, n, scale);
      let at = turns + 2u * n;
      store(key, row, head, n, cell, position, Eight(turned(v.low, rotations[at]), turned(v.high, rotations[at + 1u])));
    }
    return;
  }
  for (var n = lane; n < half; n += lanes) {
    let at = turns + 4u * n;
    let t0 = rotations[at]; let t1 = rotations[at + 1u]; let t2 = rotations[at + 2u]; let t3 = rotations[at + 3u];
    let cosines = Eight(vec4<f32>(t0.xz, t1.xz), vec4<f32>(t2.xz, t3.xz));
    let sines = Eight(vec4<f32>(t0.yw, t1.yw), vec4<f32>(t2.yw, t3.yw));
    let a = normed(row, head, n, scale);
    let b = normed(row, head, half + n, scale);
    let c = Eight(a.low * cosines.low - b.low * sines.low, a.high * cosines.high - b.high * sines.high);
    let d = Eight(b.low * cosines.low + a.low * sines.low, b.high * cosines.high + a.high * sines.high);
    store(key, row, head, n, cell, position, c);
    store(key, row, head, half + n, cell, position, d);
  }
}
