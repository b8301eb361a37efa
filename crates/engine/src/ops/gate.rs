//! The gated unit of the feed-forward network: `silu(gate) * up`, gate and up side by side in one row.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, WORKGROUP};

use super::activation_rows::{ActivationRows, INT8_BLOCK, floats_writer, has_int8, writes};

pub(crate) struct SwiGlu {
    kernel: Kernel,
    /// Threads for a row.
    threads: u32,
}

impl SwiGlu {
    pub(crate) fn new(gpu: &Gpu, columns: u32) -> Self {
        let int8 = has_int8(gpu, columns);
        let (wgsl, numbers) = if int8 {
            ([include_str!("quantise.wgsl"), include_str!("gate_int8.wgsl")].join("\n"), INT8_BLOCK)
        } else {
            ([&floats_writer(gpu, 1), include_str!("gate.wgsl")].join("\n"), 4)
        };
        let source = KernelSource {
            label: "gate",
            wgsl: &wgsl,
            constants: &[("COLUMNS", f64::from(columns))],
            bindings: &[&[BufferAccess::Read][..], &writes(gpu, int8)].concat(),
            immediates: 1,
        };
        Self { kernel: Kernel::new(gpu, &source), threads: columns / numbers }
    }

    pub(crate) fn bind(&self, gpu: &Gpu, x: &wgpu::Buffer, y: &ActivationRows) -> wgpu::BindGroup {
        self.kernel.bind_resources(gpu, std::iter::once(x.as_entire_binding()).chain(y.written()))
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, bound: &wgpu::BindGroup, rows: u32) {
        self.kernel.run(pass, bound, &[rows], (self.threads.div_ceil(WORKGROUP), rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_mode, submit};
    use crate::ops::testing::{close, close_in_bytes, numbers, read_int8};

    fn reference(x: &[f32], columns: usize) -> Vec<f64> {
        let rows = x.chunks(2 * columns).flat_map(|row| {
            let (gate, up) = row.split_at(columns);
            let pairs = gate.iter().zip(up).map(|(g, u)| (f64::from(*g), f64::from(*u)));
            pairs.map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect::<Vec<_>>()
        });
        rows.collect()
    }

    #[test]
    fn rows_of_any_length_are_gated() {
        for (rows, columns) in [(1u32, 4u32), (3, 36), (2, 100), (7, 384)] {
            let x: Vec<f32> = numbers(3, rows * 2 * columns).iter().map(|v| v * 8.0).collect();
            let expected = reference(&x, columns as usize);
            in_every_mode(|gpu| {
                let y = ActivationRows::new(gpu, "y", rows, columns);
                let gate = SwiGlu::new(gpu, columns);
                let bound = gate.bind(gpu, &gpu.buffer_with("x", &x), &y);
                submit(gpu, |pass| gate.run(pass, &bound, rows));
                let got: Vec<f32> = y.floats.read(gpu, (rows * columns) as usize);
                close(&got, &expected, 2e-6);
                if let Some(bytes) = read_int8(gpu, &y, rows, columns) {
                    close_in_bytes(&bytes, &got);
                }
            });
        }
    }
}
