//! Root-mean-square normalisation of rows.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};

use super::activation_rows::{ActivationRows, floats_writer, has_int8, writes};

pub(crate) struct RmsNorm {
    kernel: Kernel,
    /// Whether a whole workgroup does a row, and makes bytes of it as well.
    int8: bool,
}

impl RmsNorm {
    pub(crate) fn new(gpu: &Gpu, columns: u32, epsilon: f32) -> Self {
        let constants = [("COLUMNS", f64::from(columns)), ("EPSILON", f64::from(epsilon))];
        let int8 = has_int8(gpu, columns);
        let wgsl = if int8 {
            [include_str!("quantise.wgsl"), include_str!("norm_int8.wgsl")].join("\n")
        } else {
            [&floats_writer(gpu, 2), include_str!("norm.wgsl")].join("\n")
        };
        let bindings = [&[BufferAccess::Read; 2][..], &writes(gpu, int8)].concat();
        let source = KernelSource {
            label: "norm",
            wgsl: &wgsl,
            constants: &constants,
            bindings: &bindings,
            immediates: u32::from(!int8),
        };
        Self { kernel: Kernel::new(gpu, &source), int8 }
    }

    pub(crate) fn bind(
        &self,
        gpu: &Gpu,
        x: &wgpu::Buffer,
        weight: &wgpu::Buffer,
        y: &ActivationRows,
    ) -> wgpu::BindGroup {
        let read = [x, weight].map(wgpu::Buffer::as_entire_binding);
        self.kernel.bind_resources(gpu, read.into_iter().chain(y.written()))
    }

    pub(crate) fn run(
        &self,
        gpu: &Gpu,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &wgpu::BindGroup,
        rows: u32,
    ) {
        if self.int8 {
            return self.kernel.run(pass, bound, &[], (rows, 1));
        }
        self.kernel.run(pass, bound, &[rows], (gpu.workgroups(rows), 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_mode, submit};
    use crate::ops::testing::{close, close_in_bytes, numbers, read_int8};

    fn reference(x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f64> {
        let columns = weight.len();
        let rows = x.chunks(columns).flat_map(|row| {
            let mean = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / columns as f64;
            let scale = 1.0 / (mean + f64::from(epsilon)).sqrt();
            row.iter()
                .zip(weight)
                .map(move |(v, w)| f64::from(*v) * scale * f64::from(*w))
                .collect::<Vec<_>>()
        });
        rows.collect()
    }

    /// With activations of this size.
    fn check_at(size: f32, rows: u32, columns: u32) {
        let x: Vec<f32> = numbers(1, rows * columns).iter().map(|n| n * size).collect();
        let weight = numbers(2, columns);
        let expected = reference(&x, &weight, 1e-6);
        in_every_mode(|gpu| {
            let norm = RmsNorm::new(gpu, columns, 1e-6);
            let y = ActivationRows::new(gpu, "y", rows, columns);
            let [x, weight] = [gpu.buffer_with("x", &x), gpu.buffer_with("w", &weight)];
            let bound = norm.bind(gpu, &x, &weight, &y);
            submit(gpu, |pass| norm.run(gpu, pass, &bound, rows));
            let got: Vec<f32> = y.floats.read(gpu, (rows * columns) as usize);
            close(&got, &expected, 2e-6);
            if let Some(bytes) = read_int8(gpu, &y, rows, columns) {
                close_in_bytes(&bytes, &got);
            }
        });
    }

    #[test]
    fn rows_of_any_length_and_number_are_normalised() {
        for (rows, columns) in [(1, 4), (1, 128), (3, 36), (17, 100), (65, 256), (2, 1024)] {
            check_at(1.0, rows, columns);
        }
    }

    #[test]
    fn tiny_and_empty_rows_are_held_up_by_epsilon() {
        check_at(1e-3, 3, 36);
        check_at(0.0, 2, 36);
        check_at(1e6, 3, 36);
    }
}
