// h[r] += what each expert of row r gave, by its share, in the order in which they were chosen.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override COLUMNS: u32;
override USED: u32;
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;       // a row for each of a row's choices
@group(0) @binding(1) var<storage, read> chosen: array<vec2<u32>>;  // expert, and its share
@group(0) @binding(2) var<storage, read_write> h: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let fours = COLUMNS / 4u;
  let four = at.x;
  let row = at.y;
  if (four >= fours || row >= i.rows) { return; }
  var sum = vec4<f32>();
  for (var place = row * USED; place < (row + 1u) * USED; place++) {
    sum += x[place * fours + four] * bitcast<f32>(chosen[place].y);
  }
  h[row * fours + four] += sum;
}
