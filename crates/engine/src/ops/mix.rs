//! Adds what a row's experts gave to the residual stream, each by its share.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, WORKGROUP};

pub(crate) struct MixExperts {
    kernel: Kernel,
    columns: u32,
}

impl MixExperts {
    /// Rows of so many numbers, each of which went through `used` experts.
    pub(crate) fn new(gpu: &Gpu, columns: u32, used: u32) -> Self {
        let source = KernelSource {
            label: "mix",
            wgsl: include_str!("mix.wgsl"),
            constants: &[("COLUMNS", f64::from(columns)), ("USED", f64::from(used))],
            bindings: &[BufferAccess::Read, BufferAccess::Read, BufferAccess::Write],
            immediates: 1,
        };
        Self { kernel: Kernel::new(gpu, &source), columns }
    }

    pub(crate) fn bind(
        &self,
        gpu: &Gpu,
        given: &wgpu::Buffer,
        chosen: &wgpu::Buffer,
        h: &wgpu::Buffer,
    ) -> wgpu::BindGroup {
        self.kernel.bind(gpu, &[given, chosen, h])
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, bound: &wgpu::BindGroup, rows: u32) {
        self.kernel.run(pass, bound, &[rows], ((self.columns / 4).div_ceil(WORKGROUP), rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_grain, submit};
    use crate::ops::testing::{close, numbers};

    fn check(rows: u32, columns: u32, used: u32) {
        let given = numbers(1, rows * used * columns);
        let shares = numbers(2, rows * used);
        let before = numbers(3, rows * columns);
        let chosen: Vec<[u32; 2]> = shares.iter().map(|share| [9, share.to_bits()]).collect();
        let (used, width) = (used as usize, columns as usize);
        let number = |at: usize| {
            let (row, column) = (at / width, at % width);
            let of = |n: usize| (row * used + n, f64::from(given[(row * used + n) * width + column]));
            let sum: f64 = (0..used).map(of).map(|(place, given)| given * f64::from(shares[place])).sum();
            f64::from(before[at]) + sum
        };
        let expected: Vec<_> = (0..before.len()).map(number).collect();
        in_every_grain(|gpu| {
            let h = gpu.buffer_with("h", &before);
            let mix = MixExperts::new(gpu, columns, u32::try_from(used).unwrap());
            let bound =
                mix.bind(gpu, &gpu.buffer_with("given", &given), &gpu.buffer_with("chosen", &chosen), &h);
            submit(gpu, |pass| mix.run(pass, &bound, rows));
            close(&gpu.read(&h, before.len()).unwrap(), &expected, 1e-6);
        });
    }

    #[test]
    fn what_experts_give_is_added_by_its_share() {
        for (rows, columns, used) in [(1, 4, 1), (1, 100, 3), (5, 36, 8), (3, 260, 2), (7, 1024, 4)] {
            check(rows, columns, used);
        }
    }
}
