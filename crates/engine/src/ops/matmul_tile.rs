//! Many rows of activations times a matrix: the kernel that unpacks weights once for 32 tokens and keeps them, and the tokens',
//! where a workgroup's threads share them. Its results have the bits that the kernels for few tokens give.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};
use stint_gguf::TensorType;

use super::formats::shader;

/// From so many tokens on the tile is worth it: half of it is used.
pub(crate) const TILE_TOKENS_MIN: u32 = 16;

/// What a workgroup computes, as the shader has it.
const ROWS: u32 = 64;
const TOKENS: u32 = 32;

pub(super) struct MatmulTile(Kernel);

impl MatmulTile {
    /// It is bound and told what the kernels of a plain matrix are, and given their constants.
    pub(super) fn new(
        gpu: &Gpu,
        kind: TensorType,
        bindings: &[BufferAccess],
        constants: &[(&'static str, f64)],
    ) -> Self {
        let parts = [include_str!("matmul_sums.wgsl"), include_str!("matmul_tile.wgsl")];
        let wgsl = shader(kind, &parts.join("\n"));
        let source = KernelSource { label: "matmul tile", wgsl: &wgsl, constants, bindings, immediates: 5 };
        Self(Kernel::new(gpu, &source))
    }

    /// So many rows of a matrix times so many tokens. The immediates are those of the other kernels.
    pub(super) fn run(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &wgpu::BindGroup,
        immediates: &[u32; 5],
    ) {
        let [rows, tokens, ..] = *immediates;
        self.0.run(pass, bound, immediates, (tokens.div_ceil(TOKENS), rows.div_ceil(ROWS)));
    }
}
