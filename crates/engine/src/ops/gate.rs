//! The gated unit of the feed-forward network: `silu(gate) * up`, gate and up side by side in one row.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, WORKGROUP};

pub(crate) struct SwiGlu {
    kernel: Kernel,
    columns: u32,
}

impl SwiGlu {
    pub(crate) fn new(gpu: &Gpu, columns: u32) -> Self {
        let source = KernelSource {
            label: "gate",
            wgsl: include_str!("gate.wgsl"),
            constants: &[("COLUMNS", f64::from(columns))],
            bindings: &[BufferAccess::Read, BufferAccess::Write],
            immediates: 1,
        };
        Self { kernel: Kernel::new(gpu, &source), columns }
    }

    pub(crate) fn bind(&self, gpu: &Gpu, x: &wgpu::Buffer, y: &wgpu::Buffer) -> wgpu::BindGroup {
        self.kernel.bind(gpu, &[x, y])
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, bound: &wgpu::BindGroup, rows: u32) {
        self.kernel.run(pass, bound, &[rows], ((self.columns / 4).div_ceil(WORKGROUP), rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{shared, submit};
    use crate::ops::testing::{close, numbers};

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
        let gpu = shared();
        for (rows, columns) in [(1u32, 4u32), (3, 36), (2, 100), (7, 384)] {
            let x: Vec<f32> = numbers(3, rows * 2 * columns).iter().map(|v| v * 8.0).collect();
            let y = gpu.buffer("y", u64::from(rows * columns) * 4);
            let gate = SwiGlu::new(&gpu, columns);
            let bound = gate.bind(&gpu, &gpu.buffer_with("x", &x), &y);
            submit(&gpu, |pass| gate.run(pass, &bound, rows));
            let got = gpu.read(&y, (rows * columns) as usize).unwrap();
            close(&got, &reference(&x, columns as usize), 2e-6);
        }
    }
}
