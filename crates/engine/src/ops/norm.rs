//! Root-mean-square normalisation of rows, of all of them in order or of the picked ones.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};

pub(crate) struct RmsNorm(Kernel);

impl RmsNorm {
    /// Row `r` reads row `r`, or with `picked` the row that pick `r` names.
    pub(crate) fn new(gpu: &Gpu, columns: u32, epsilon: f32, picked: bool) -> Self {
        let constants = [
            ("COLUMNS", f64::from(columns)),
            ("EPSILON", f64::from(epsilon)),
            ("PICKED", f64::from(u8::from(picked))),
        ];
        Self(Kernel::new(
            gpu,
            &KernelSource {
                label: "norm",
                wgsl: include_str!("norm.wgsl"),
                constants: &constants,
                bindings: &[BufferAccess::Read, BufferAccess::Read, BufferAccess::Read, BufferAccess::Write],
                immediates: 1,
            },
        ))
    }

    pub(crate) fn bind(
        &self,
        gpu: &Gpu,
        x: &wgpu::Buffer,
        weight: &wgpu::Buffer,
        picks: &wgpu::Buffer,
        y: &wgpu::Buffer,
    ) -> wgpu::BindGroup {
        self.0.bind(gpu, &[x, weight, picks, y])
    }

    pub(crate) fn run(
        &self,
        gpu: &Gpu,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &wgpu::BindGroup,
        rows: u32,
    ) {
        self.0.run(pass, bound, &[rows], (gpu.workgroups(rows), 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{shared, submit};
    use crate::ops::testing::{close, numbers};

    fn reference(x: &[f32], weight: &[f32], picks: &[[u32; 2]], epsilon: f32) -> Vec<f64> {
        let columns = weight.len();
        let rows = picks.iter().flat_map(|pick| {
            let row = &x[pick[0] as usize * columns..][..columns];
            let mean = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / columns as f64;
            let scale = 1.0 / (mean + f64::from(epsilon)).sqrt();
            row.iter()
                .zip(weight)
                .map(move |(v, w)| f64::from(*v) * scale * f64::from(*w))
                .collect::<Vec<_>>()
        });
        rows.collect()
    }

    fn check(rows: u32, columns: u32, picks: &[[u32; 2]]) {
        check_at(1.0, rows, columns, picks);
    }

    /// With activations of this size.
    fn check_at(size: f32, rows: u32, columns: u32, picks: &[[u32; 2]]) {
        let gpu = shared();
        let x: Vec<f32> = numbers(1, rows * columns).iter().map(|n| n * size).collect();
        let weight = numbers(2, columns);
        let picked = !picks.is_empty();
        let all: Vec<_> = (0..rows).map(|row| [row, 0]).collect();
        let picks = if picked { picks } else { &all };
        let norm = RmsNorm::new(&gpu, columns, 1e-6, picked);
        let y = gpu.buffer("y", picks.len() as u64 * u64::from(columns) * 4);
        let bound = norm.bind(
            &gpu,
            &gpu.buffer_with("x", &x),
            &gpu.buffer_with("w", &weight),
            &gpu.buffer_with("p", picks),
            &y,
        );
        let count = u32::try_from(picks.len()).unwrap();
        submit(&gpu, |pass| norm.run(&gpu, pass, &bound, count));
        close(
            &gpu.read(&y, picks.len() * columns as usize).unwrap(),
            &reference(&x, &weight, picks, 1e-6),
            2e-6,
        );
    }

    #[test]
    fn rows_of_any_length_and_number_are_normalised() {
        for (rows, columns) in [(1, 4), (1, 128), (3, 36), (17, 100), (65, 256), (2, 1024)] {
            check(rows, columns, &[]);
        }
    }

    #[test]
    fn tiny_and_empty_rows_are_held_up_by_epsilon() {
        check_at(1e-3, 3, 36, &[]);
        check_at(0.0, 2, 36, &[]);
        check_at(1e6, 3, 36, &[]);
    }

    #[test]
    fn picked_rows_are_normalised_in_the_order_of_the_picks() {
        check(9, 36, &[[8, 0], [0, 1], [3, 2]]);
        check(9, 36, &[[5, 0]]);
    }
}
