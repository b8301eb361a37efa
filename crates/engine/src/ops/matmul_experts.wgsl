// A token is multiplied with the rows of each expert that was chosen for it: its n-th choice is place `token * USED + n` of `chosen`
// and of y. Part of the kernels for few tokens.
struct Immediates { rows: u32, places: u32, columns: u32, stride: u32, first: u32, expert: u32, experts: u32 }
var<immediate> i: Immediates;
override SHARING: u32;  // so many places in a row have their row of x in common
@group(0) @binding(4) var<storage, read> chosen: array<vec2<u32>>;  // expert, and its share
@group(0) @binding(5) var<storage, read> teams: array<vec4<u32>>;

// One place, or where COLS is 4 a team of up to four that chose the same expert: rows of x; rows of y, NONE where nothing is
// stored; the first row of the weights, and how many there are.
struct Columns { x: vec4<u32>, y: vec4<u32>, base: u32, all: u32 }
const NONE = 0xffffffffu;

fn columns(group: u32) -> Columns {
  var team = vec4<u32>(group, NONE, NONE, NONE);
  if (COLS > 1u) { team = teams[group]; }
  let nobody = vec4<u32>(NONE);
  if (team.x >= i.places) { return Columns(vec4<u32>(), nobody, 0u, 1u); }
  let expert = chosen[team.x].x - i.expert;
  // It lies in another part of the matrix.
  if (expert >= i.experts) { return Columns(vec4<u32>(), nobody, 0u, 1u); }
  let places = select(team, vec4<u32>(team.x), team >= vec4<u32>(i.places));
  return Columns(places / SHARING, team, expert * i.rows, i.experts * i.rows);
}
