//! The rows that logits are wanted of, taken out of all: what the last layer makes of the others nobody reads.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, Plane, WORKGROUP};

use super::activation_rows::{floats_reader, floats_writer, reads_floats, writes};

pub(crate) struct PickRows {
    kernel: Kernel,
    /// Threads for one row.
    fours: u32,
}

/// Where rows are taken from, and where they go.
pub(crate) struct PickTied<'a> {
    pub(crate) picks: &'a wgpu::Buffer,
    /// The residual stream, and what attention gave.
    pub(crate) from: (&'a wgpu::Buffer, &'a Plane),
    pub(crate) to: (&'a wgpu::Buffer, &'a Plane),
}

impl PickRows {
    /// Rows of the residual stream have `hidden` numbers, those that attention gives `queries`.
    pub(crate) fn new(gpu: &Gpu, hidden: u32, queries: u32) -> Self {
        use BufferAccess::{Read, Write};
        let bindings = [&[Read, Read, reads_floats(gpu), Write][..], &writes(gpu, false)].concat();
        let wgsl = [&*floats_reader(gpu, 2), &floats_writer(gpu, 4), include_str!("pick.wgsl")].join("\n");
        let source = KernelSource {
            label: "pick",
            wgsl: &wgsl,
            constants: &[("HIDDEN", f64::from(hidden)), ("QUERIES", f64::from(queries))],
            bindings: &bindings,
            immediates: 1,
        };
        Self { kernel: Kernel::new(gpu, &source), fours: hidden.max(queries).div_ceil(4) }
    }

    pub(crate) fn bind(&self, gpu: &Gpu, tied: &PickTied<'_>) -> wgpu::BindGroup {
        let PickTied { picks, from, to } = tied;
        let resources = [
            picks.as_entire_binding(),
            from.0.as_entire_binding(),
            from.1.binding(),
            to.0.as_entire_binding(),
            to.1.binding(),
        ];
        self.kernel.bind_resources(gpu, resources)
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, bound: &wgpu::BindGroup, picks: u32) {
        self.kernel.run(pass, bound, &[picks], (self.fours.div_ceil(WORKGROUP), picks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_mode, submit};
    use crate::ops::ActivationRows;
    use crate::ops::testing::numbers;

    fn check(hidden: u32, queries: u32, picks: &[[u32; 2]]) {
        let rows = 9;
        let count = u32::try_from(picks.len()).unwrap();
        let (h, attended) = (numbers(1, rows * hidden), numbers(2, rows * queries));
        let of = |all: &[f32], width: u32| -> Vec<f32> {
            let width = width as usize;
            picks.iter().flat_map(|pick| all[pick[0] as usize * width..][..width].to_vec()).collect()
        };
        in_every_mode(|gpu| {
            let [from, to] = [rows, count].map(|rows| ActivationRows::new(gpu, "attended", rows, queries));
            from.floats.fill(gpu, bytemuck::cast_slice(&attended));
            let all = gpu.buffer_with("h", &h);
            let picked = gpu.buffer("picked", u64::from(count * hidden) * 4);
            let pick = PickRows::new(gpu, hidden, queries);
            let tied = PickTied {
                picks: &gpu.buffer_with("picks", picks),
                from: (&all, &from.floats),
                to: (&picked, &to.floats),
            };
            let bound = pick.bind(gpu, &tied);
            submit(gpu, |pass| pick.run(pass, &bound, count));
            assert_eq!(gpu.read::<f32>(&picked, (count * hidden) as usize).unwrap(), of(&h, hidden));
            let got: Vec<f32> = to.floats.read(gpu, (count * queries) as usize);
            assert_eq!(got, of(&attended, queries));
        });
    }

    #[test]
    fn picked_rows_come_in_the_order_of_the_picks() {
        check(36, 64, &[[8, 0], [0, 1], [3, 2]]);
        check(512, 260, &[[5, 0]]);
        check(4, 4, &[[0, 0], [1, 0], [2, 0], [3, 1], [4, 1], [5, 1], [6, 2], [7, 2], [8, 3]]);
    }
}
