//! Changes of single logits before tokens are drawn: penalties and biases, which the host keeps.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};

/// One logit's change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogitChange {
    /// Its place: the pick's number, and the token.
    pub(crate) pick: u32,
    pub(crate) token: u32,
    /// It is divided by this if it is positive, else multiplied.
    pub(crate) divisor: f32,
    /// So much is taken off.
    pub(crate) less: f32,
}

impl LogitChange {
    /// How large one is on the device.
    pub(crate) const BYTES: u64 = 16;
}

pub(crate) struct AdjustLogits {
    kernel: Kernel,
    group: wgpu::BindGroup,
    entries: wgpu::Buffer,
    vocab: u32,
    entries_max: usize,
}

/// Workgroups that fit side by side; more go below.
const GRID_MAX: u32 = 65_535;

impl AdjustLogits {
    /// With room for so many changes in a step.
    pub(crate) fn new(gpu: &Gpu, vocab: u32, logits: &wgpu::Buffer, entries_max: u32) -> Self {
        let source = KernelSource {
            label: "adjust",
            wgsl: include_str!("adjust.wgsl"),
            constants: &[],
            bindings: &[BufferAccess::Read, BufferAccess::Write],
            immediates: 1,
        };
        let kernel = Kernel::new(gpu, &source);
        let entries = gpu.buffer("logit changes", u64::from(entries_max) * LogitChange::BYTES);
        let group = kernel.bind(gpu, &[&entries, logits]);
        Self { kernel, group, entries, vocab, entries_max: entries_max as usize }
    }

    /// Hands the changes of the next step to the device, as many as there is room for. Returns how many that are.
    pub(crate) fn write(&self, gpu: &Gpu, changes: &[LogitChange]) -> u32 {
        let entry = |change: &LogitChange| {
            let place = change.pick * self.vocab + change.token;
            [place, change.divisor.to_bits(), change.less.to_bits(), 0]
        };
        let entries: Vec<[u32; 4]> = changes.iter().take(self.entries_max).map(entry).collect();
        if !entries.is_empty() {
            gpu.queue.write_buffer(&self.entries, 0, bytemuck::cast_slice(&entries));
        }
        u32::try_from(entries.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, entries: u32) {
        let groups = entries.div_ceil(64);
        if groups > 0 {
            let grid = (groups.min(GRID_MAX), groups.div_ceil(GRID_MAX));
            self.kernel.run(pass, &self.group, &[entries], grid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{shared, submit};
    use crate::ops::testing::numbers;

    #[test]
    fn the_logits_that_are_named_change_and_no_others() {
        let gpu = shared();
        let before = numbers(3, 3 * 500);
        let logits = gpu.buffer_with("logits", &before);
        let adjust = AdjustLogits::new(&gpu, 500, &logits, 400);
        // Three of 400 changes, and one too many.
        let changes: Vec<_> = (0u32..401)
            .map(|n| LogitChange { pick: n % 3, token: n / 3 * 2, divisor: 1.3, less: n as f32 * 0.01 })
            .collect();
        let count = adjust.write(&gpu, &changes);
        submit(&gpu, |pass| adjust.run(pass, count));
        let after: Vec<f32> = gpu.read(&logits, before.len()).unwrap();
        let mut expected = before;
        for change in changes.iter().take(400) {
            let logit = &mut expected[(change.pick * 500 + change.token) as usize];
            *logit = if *logit > 0.0 { *logit / 1.3 } else { *logit * 1.3 } - change.less;
        }
        assert_eq!(count, 400);
        let off = after.iter().zip(&expected).map(|(a, e)| (a - e).abs()).fold(0.0, f32::max);
        assert!(off < 1e-5, "{off}");
    }
}
