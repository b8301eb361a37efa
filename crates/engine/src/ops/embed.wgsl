// h[t] = the embedding of row t's token, if it lies in this part of the table. A row's token is stated, or
// the last that its slot sampled.
struct Immediates { rows: u32, first: u32, ids: u32 }
var<immediate> i: Immediates;
override COLUMNS: u32;
override SLOT_WORDS: u32;
override SLOT_LAST: u32;
@group(0) @binding(2) var<storage, read> rows: array<vec4<u32>>;  // token, slot, position
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read_write> h: array<f32>;

fn number(row: u32, column: u32) -> f32 {
  let n = (column / 4u) % FOURS;
  let b = place(origin(row, i.ids, COLUMNS / (4u * FOURS)), column / (4u * FOURS));
  let f = factors(b, n * PARTS / FOURS);
  return four(load(b), n)[column & 3u] * f.x + f.y;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let column = at.x;
  let row = at.y;
  if (column >= COLUMNS || row >= i.rows) { return; }
  var token = rows[row].x;
  if (token == 0xffffffffu) { token = slots[rows[row].y * SLOT_WORDS + SLOT_LAST]; }
  if (token < i.first || token >= i.first + i.ids) { return; }
  h[row * COLUMNS + column] = number(token - i.first, column);
}
