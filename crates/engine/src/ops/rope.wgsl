// Per row and head: queries are normalised and rotated in place; keys are normalised, rotated and put into
// the cache; values are put into the cache. One subgroup a head. Rotation pairs number n with n + HEAD_DIM / 2;
// two pairs go together.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override EPSILON: f32;
override BLOCK: u32;
override BLOCKS: u32;  // blocks in a slot's table
@group(0) @binding(0) var<storage, read_write> qkv: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read> q_norm: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> k_norm: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read> rotations: array<vec4<f32>>;  // cosine, sine, twice
@group(0) @binding(4) var<storage, read> rows: array<vec4<u32>>;       // token, slot, position
@group(0) @binding(5) var<storage, read> blocks: array<u32>;
@group(0) @binding(6) var<storage, read_write> keys: array<vec2<f32>>;
@group(0) @binding(7) var<storage, read_write> values: array<vec2<f32>>;

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
  let cell = ((block * KV_HEADS + kv_head) * BLOCK + position % BLOCK) * twos;
  if (head >= HEADS + KV_HEADS) {
    for (var n = lane; n < twos; n += lanes) { values[cell + n] = qkv[base + n]; }
    return;
  }
  var sum = 0.0;
  for (var n = lane; n < twos; n += lanes) {
    let v = qkv[base + n];
    sum += dot(v, v);
  }
  let scale = 1.0 / sqrt(subgroupAdd(sum) / f32(HEAD_DIM) + EPSILON);
  let half = twos / 2u;
  for (var n = lane; n < half; n += lanes) {
    let turn = rotations[position * half + n];
    let key = head >= HEADS;
    let a = qkv[base + n] * scale * select(q_norm[n], k_norm[n], key);
    let b = qkv[base + half + n] * scale * select(q_norm[half + n], k_norm[half + n], key);
    let c = a * turn.xz - b * turn.yw;
    let d = b * turn.xz + a * turn.yw;
    if (key) {
      keys[cell + n] = c;
      keys[cell + half + n] = d;
    } else {
      qkv[base + n] = c;
      qkv[base + half + n] = d;
    }
  }
}
