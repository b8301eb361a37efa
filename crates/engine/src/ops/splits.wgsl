// A row's positions are split among workgroups by their number alone: in tiles, and in so many tiles a split that
// there are not too many splits.
const TILE = 256u;
const SPLITS = 64u;
fn span(length: u32) -> u32 {
  let tiles = (length + TILE - 1u) / TILE;
  return (tiles + SPLITS - 1u) / SPLITS * TILE;
}
fn split_count(length: u32) -> u32 { return (length + span(length) - 1u) / span(length); }
