//! How each format of weights is read on the device: the part of a shader that differs between them.

use crate::gpu::{BufferAccess, PlaneStorage, PlaneUnit, TEXTURE_ROW};
use crate::weights::has_blocks;
use stint_gguf::TensorType;

/// A shader that reads weights, made of where they lie, what all formats share, the format's own part, and the rest.
pub(super) fn shader(storage: PlaneStorage, kind: TensorType, rest: &str) -> String {
    let blocks = if has_blocks(kind) { include_str!("formats/blocks.wgsl") } else { "" };
    let halves = if has_halves(kind) { include_str!("formats/halves.wgsl") } else { "" };
    [&planes(storage), include_str!("formats/common.wgsl"), own(kind), halves, blocks, rest].join("\n")
}

/// Whether blocks of these weights have one 16-bit float each, and nothing else.
pub(super) fn has_halves(kind: TensorType) -> bool {
    matches!(kind, TensorType::Q4_0 | TensorType::Q8_0 | TensorType::Iq4Nl)
}

/// The part of a shader that reads what the blocks of two neighbouring rows are multiplied with. `in_fours` says that rows are in fours.
pub(super) fn two_factors(kind: TensorType, in_fours: bool) -> &'static str {
    if in_fours && has_halves(kind) {
        include_str!("formats/two_halves.wgsl")
    } else {
        include_str!("formats/two_apart.wgsl")
    }
}

/// The first bindings of such a shader: numbers, and what stands beside them.
pub(super) fn plane_access(storage: PlaneStorage) -> [BufferAccess; 2] {
    match storage {
        PlaneStorage::Buffers => [BufferAccess::Read; 2],
        PlaneStorage::Textures => [PlaneUnit::Vector, PlaneUnit::Word].map(BufferAccess::ReadTexture),
    }
}

fn planes(storage: PlaneStorage) -> String {
    match storage {
        PlaneStorage::Buffers => include_str!("formats/buffers.wgsl").to_owned(),
        PlaneStorage::Textures => {
            format!("const TEXTURE_ROW = {TEXTURE_ROW}u;\n{}", include_str!("formats/textures.wgsl"))
        }
    }
}

fn own(kind: TensorType) -> &'static str {
    match kind {
        TensorType::F32 => include_str!("formats/f32.wgsl"),
        TensorType::F16 => include_str!("formats/f16.wgsl"),
        TensorType::Bf16 => include_str!("formats/bf16.wgsl"),
        TensorType::Q4_0 => include_str!("formats/q4_0.wgsl"),
        TensorType::Q4_1 => include_str!("formats/q4_1.wgsl"),
        TensorType::Q5_0 => include_str!("formats/q5_0.wgsl"),
        TensorType::Q5_1 => include_str!("formats/q5_1.wgsl"),
        TensorType::Q8_0 => include_str!("formats/q8_0.wgsl"),
        TensorType::Q4K => include_str!("formats/q4_k.wgsl"),
        TensorType::Q5K => include_str!("formats/q5_k.wgsl"),
        TensorType::Q6K => include_str!("formats/q6_k.wgsl"),
        TensorType::Iq4Nl => include_str!("formats/iq4_nl.wgsl"),
        TensorType::Mxfp4 => include_str!("formats/mxfp4.wgsl"),
    }
}
