//! The embeddings of a batch's tokens, gathered from the table; the table may lie in several parts.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, Plane, WORKGROUP};
use crate::weights::{MatrixPart, WeightMatrix, interleaved_rows, weight_storage};

use super::formats::{plane_access, shader};
use super::sample::SLOT_LAST;
use super::{LAST_SAMPLED, SLOT_WORDS};

/// The table tied to the batch and to the activations it fills.
pub(crate) struct Embed {
    dispatches: Vec<EmbedDispatch>,
    columns: u32,
}

struct EmbedDispatch {
    kernel: Kernel,
    bind_group: wgpu::BindGroup,
    first: u32,
    ids: u32,
}

/// The kernel spells the mark out.
const _: () = assert!(LAST_SAMPLED == 0xffff_ffff);

impl Embed {
    pub(crate) fn new(
        gpu: &Gpu,
        table: &WeightMatrix,
        rows: &wgpu::Buffer,
        slots: &wgpu::Buffer,
        h: &wgpu::Buffer,
    ) -> Self {
        let calls = table.parts.iter().map(|part| {
            let kernel = kernel(gpu, part, table.columns);
            let buffers = [rows, slots, h].map(wgpu::Buffer::as_entire_binding);
            let planes = part.planes().map(Plane::binding).into_iter();
            let group = kernel.bind_resources(gpu, planes.chain(buffers));
            EmbedDispatch { kernel, bind_group: group, first: part.first, ids: part.rows }
        });
        Self { dispatches: calls.collect(), columns: table.columns }
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, rows: u32) {
        for call in &self.dispatches {
            let grid = (self.columns.div_ceil(WORKGROUP), rows);
            call.kernel.run(pass, &call.bind_group, &[rows, call.first, call.ids], grid);
        }
    }
}

fn kernel(gpu: &Gpu, part: &MatrixPart, columns: u32) -> Kernel {
    let constants = [
        ("COLUMNS", f64::from(columns)),
        ("GROUP", f64::from(interleaved_rows(gpu.mode.reduction(), part.kind))),
        ("SLOT_WORDS", f64::from(SLOT_WORDS)),
        ("SLOT_LAST", f64::from(SLOT_LAST)),
    ];
    let storage = weight_storage(gpu, part.kind);
    let [numbers, scales] = plane_access(storage);
    Kernel::new(
        gpu,
        &KernelSource {
            label: "embed",
            wgsl: &shader(storage, part.kind, include_str!("embed.wgsl")),
            constants: &constants,
            bindings: &[numbers, scales, BufferAccess::Read, BufferAccess::Read, BufferAccess::Write],
            immediates: 3,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_mode, shared_small_textures, submit};
    use crate::ops::testing::close;
    use stint_gguf::synth::{SyntheticModel, decode};
    use stint_gguf::{Gguf, TensorType};

    fn check(kind: TensorType, hidden: u32, binding_max: u64) {
        let synth = SyntheticModel {
            kind,
            hidden,
            head_dim: hidden / 4,
            feed_forward: hidden,
            ..SyntheticModel::default()
        };
        let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
        let tensor = gguf.tensor("token_embd.weight").unwrap();
        let expected = [0, 33, 63, 31]
            .into_iter()
            .flat_map(|id: usize| (0..hidden as usize).map(move |column| (id, column)));
        let numbers = decode(kind, &tensor.read().unwrap());
        let expected: Vec<_> = expected.map(|(id, column)| numbers[id * hidden as usize + column]).collect();
        let gives = |gpu: &Gpu| close(&gather(gpu, &gguf, hidden, binding_max), &expected, 3e-7);
        in_every_mode(gives);
        gives(&shared_small_textures());
    }

    /// The embeddings of tokens 0, 33, 63 and 31.
    fn gather(gpu: &Gpu, gguf: &Gguf, hidden: u32, binding_max: u64) -> Vec<f32> {
        let names = ["token_embd.weight".to_owned()];
        let table = WeightMatrix::load_within(gpu, gguf, &names, hidden, binding_max).unwrap();
        // The second row asks for the last token of slot 1, which is 33.
        let rows = [[0u32, 0, 0, 0], [LAST_SAMPLED, 1, 7, 0], [63, 0, 1, 0], [31, 0, 2, 0]];
        let mut slots = vec![0u32; SLOT_WORDS as usize * 2];
        slots[(SLOT_WORDS + SLOT_LAST) as usize] = 33;
        let h = gpu.buffer("h", u64::from(hidden) * 16);
        let (rows, slots) = (gpu.buffer_with("rows", &rows), gpu.buffer_with("slots", &slots));
        let embed = Embed::new(gpu, &table, &rows, &slots, &h);
        submit(gpu, |pass| embed.run(pass, 4));
        gpu.read(&h, hidden as usize * 4).unwrap()
    }

    #[test]
    fn every_kind_of_table_gives_its_rows() {
        check(TensorType::F32, 36, u64::MAX);
        for kind in TensorType::ALL {
            check(kind, if kind.block_numbers() == 256 { 512 } else { 96 }, u64::MAX);
        }
    }

    #[test]
    fn a_table_in_parts_gives_the_same_rows() {
        check(TensorType::F32, 36, 36 * 4 * 10);
        check(TensorType::F16, 40, 40 * 2 * 33);
        check(TensorType::Q8_0, 96, 96 * 32);
        check(TensorType::Q5K, 256, 128 * 13);
    }
}
