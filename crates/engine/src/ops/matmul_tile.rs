//! Many rows of activations times a matrix: the kernel that unpacks weights once for all tokens of a workgroup, and keeps them
//! where its threads share them. Its results have the bits that the kernels for few tokens give.
//!
//! Where the matrix units of a GPU are used (feature `cooperative-matrix`) another kernel does the same, in 16-bit floats: then a
//! token's bits depend on how many are computed with it.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};
use stint_gguf::TensorType;

use super::formats::shader;

/// From so many tokens on the tile is worth it: half of it is used.
pub(crate) const TILE_TOKENS_MIN: u32 = 16;

/// Rows that a workgroup computes, as the shaders have it.
const ROWS: u32 = 64;

pub(super) struct MatmulTile {
    kernel: Kernel,
    /// Tokens that a workgroup computes.
    tokens: u32,
}

impl MatmulTile {
    /// It is bound and told what the kernels of a plain matrix are.
    pub(super) fn new(
        gpu: &Gpu,
        kind: TensorType,
        bindings: &[BufferAccess],
        add: bool,
        strands: u32,
    ) -> Self {
        let add = ("ADD", f64::from(u8::from(add)));
        let strands = ("STRANDS", f64::from(strands));
        let make = |label, wgsl: &str, constants: &[_]| {
            Kernel::new(gpu, &KernelSource { label, wgsl, constants, bindings, immediates: 5 })
        };
        if gpu.has_matrix_units {
            Self { kernel: make("matmul by matrix units", &matrix_units_shader(kind), &[add]), tokens: 64 }
        } else {
            let parts = [include_str!("matmul_sums.wgsl"), include_str!("matmul_tile.wgsl")];
            Self {
                kernel: make("matmul tile", &shader(kind, &parts.join("\n")), &[add, strands]),
                tokens: 32,
            }
        }
    }

    /// So many rows of a matrix times so many tokens. The immediates are those of the other kernels.
    pub(super) fn run(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &wgpu::BindGroup,
        immediates: &[u32; 5],
    ) {
        let [rows, tokens, ..] = *immediates;
        let grid = (tokens.div_ceil(self.tokens), rows.div_ceil(ROWS));
        self.kernel.run(pass, bound, immediates, grid);
    }
}

fn matrix_units_shader(kind: TensorType) -> String {
    let rest = shader(kind, include_str!("matmul_matrix_units.wgsl"));
    ["enable f16;\nenable wgpu_cooperative_matrix;", &rest].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wgpu::naga;

    /// `OpCooperativeMatrixMulAddKHR`.
    const MULTIPLY_ADD: u32 = 4459;

    /// The operations of a module: each is the low half of a first word, whose other half says how many words it has.
    fn operations(words: &[u32]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut at = 5;
        while let Some(word) = words.get(at) {
            found.push(word & 0xffff);
            at += (word >> 16).max(1) as usize;
        }
        found
    }

    /// No driver here has such units: whether the shader is one is all that can be told.
    #[test]
    fn the_shader_for_matrix_units_is_valid_and_becomes_spir_v_in_every_format() {
        for kind in TensorType::ALL {
            let module = naga::front::wgsl::parse_str(&matrix_units_shader(kind)).unwrap();
            let mut validator = naga::valid::Validator::new(
                naga::valid::ValidationFlags::all(),
                naga::valid::Capabilities::all(),
            );
            let info = validator.validate(&module).unwrap();
            let constants = [("ADD".to_owned(), 1.0)].into_iter().collect();
            let entry = (naga::ShaderStage::Compute, "main");
            let (module, info) =
                naga::back::pipeline_constants::process_overrides(&module, &info, Some(entry), &constants)
                    .unwrap();
            let options = naga::back::spv::Options { lang_version: (1, 6), ..Default::default() };
            let words = naga::back::spv::write_vec(&module, &info, &options, None).unwrap();
            assert!(operations(&words).contains(&MULTIPLY_ADD), "{kind:?}");
        }
    }

    /// What every device has for a workgroup's memory: 16 KiB.
    #[test]
    fn both_kernels_fit_into_the_memory_that_every_device_has() {
        for kind in TensorType::ALL {
            let parts = [include_str!("matmul_sums.wgsl"), include_str!("matmul_tile.wgsl")];
            for wgsl in [shader(kind, &parts.join("\n")), matrix_units_shader(kind)] {
                let module = naga::front::wgsl::parse_str(&wgsl).unwrap();
                let shared = module.global_variables.iter().map(|(_, variable)| variable);
                let shared = shared.filter(|variable| variable.space == naga::AddressSpace::WorkGroup);
                let bytes: u32 =
                    shared.map(|variable| module.types[variable.ty].inner.size(module.to_ctx())).sum();
                assert!((1..=16 << 10).contains(&bytes), "{kind:?}: {bytes} bytes");
            }
        }
    }
}
