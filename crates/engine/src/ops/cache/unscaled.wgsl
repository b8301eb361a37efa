// Numbers stand for themselves, and nothing stands behind them.
const SCALED = false;
fn head_fours() -> u32 { return HEAD_DIM / 4u; }
fn key_scale(cell: u32, group: u32) -> f32 { return 1.0; }
fn value_scales(cell: u32, position: u32) -> vec4<u32> { return vec4<u32>(); }
fn unpack_scale(word: u32, group: u32) -> f32 { return 1.0; }
