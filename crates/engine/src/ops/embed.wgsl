// h[t] = the embedding of row t's token, if it lies in this part of the table. A row's token is stated, or
// the last that its slot sampled.
struct Immediates { rows: u32, first: u32, ids: u32 }
var<immediate> i: Immediates;
override KIND: u32;  // 0 F32, 1 F16, 2 Q8_0
override COLUMNS: u32;
override SLOT_WORDS: u32;
override SLOT_LAST: u32;
@group(0) @binding(0) var<storage, read> table: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> rows: array<vec4<u32>>;  // token, slot, position
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read_write> h: array<f32>;

fn number(at: u32) -> f32 {
  if (KIND == 0u) { return bitcast<f32>(table[at]); }
  if (KIND == 1u) {
    let pair = unpack2x16float(table[at >> 1u]);
    return select(pair.x, pair.y, (at & 1u) == 1u);
  }
  let block = at / 32u;
  let pair = unpack2x16float(scales[block >> 1u]);
  let scale = select(pair.x, pair.y, (block & 1u) == 1u);
  return f32(unpack4xI8(table[at >> 2u])[at & 3u]) * scale;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let column = at.x;
  let row = at.y;
  if (column >= COLUMNS || row >= i.rows) { return; }
  var token = rows[row].x;
  if (token == 0xffffffffu) { token = slots[rows[row].y * SLOT_WORDS + SLOT_LAST]; }
  if (token < i.first || token >= i.first + i.ids) { return; }
  h[row * COLUMNS + column] = number((token - i.first) * COLUMNS + column);
}
