//! Takes tokens that may not come out of the logits of single picks.

use crate::constraint::TokenSet;
use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};

/// The tokens that may be drawn for a pick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickMask {
    /// The pick's number.
    pub(crate) pick: u32,
    pub(crate) allowed: TokenSet,
}

pub(crate) struct MaskLogits {
    kernel: Kernel,
    group: wgpu::BindGroup,
    picks: wgpu::Buffer,
    allowed: wgpu::Buffer,
    vocab: u32,
}

impl MaskLogits {
    /// With room for so many picks in a step.
    pub(crate) fn new(gpu: &Gpu, vocab: u32, logits: &wgpu::Buffer, picks_max: u32) -> Self {
        let words = vocab.div_ceil(32);
        let source = KernelSource {
            label: "mask",
            wgsl: include_str!("mask.wgsl"),
            constants: &[("VOCAB", f64::from(vocab)), ("WORDS", f64::from(words))],
            bindings: &[BufferAccess::Read, BufferAccess::Read, BufferAccess::Write],
            immediates: 0,
        };
        let kernel = Kernel::new(gpu, &source);
        let picks = gpu.buffer("masked picks", u64::from(picks_max) * 4);
        let allowed = gpu.buffer("allowed tokens", u64::from(picks_max) * u64::from(words) * 4);
        let group = kernel.bind(gpu, &[&picks, &allowed, logits]);
        Self { kernel, group, picks, allowed, vocab }
    }

    /// Hands the next step's masks to the device. Returns how many there are.
    pub(crate) fn write(&self, gpu: &Gpu, masks: &[PickMask]) -> u32 {
        if masks.is_empty() {
            return 0;
        }
        let picks: Vec<_> = masks.iter().map(|mask| mask.pick).collect();
        let words: Vec<_> = masks.iter().flat_map(|mask| mask.allowed.words()).copied().collect();
        gpu.queue.write_buffer(&self.picks, 0, bytemuck::cast_slice(&picks));
        gpu.queue.write_buffer(&self.allowed, 0, bytemuck::cast_slice(&words));
        u32::try_from(masks.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, masks: u32) {
        if masks > 0 {
            self.kernel.run(pass, &self.group, &[], (self.vocab.div_ceil(256), masks));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{shared, submit};
    use crate::ops::testing::numbers;

    #[test]
    fn what_may_not_come_is_taken_out_of_its_own_pick_alone() {
        let gpu = shared();
        for vocab in [7u32, 64, 777] {
            let before = numbers(4, 3 * vocab);
            let logits = gpu.buffer_with("logits", &before);
            let mask = MaskLogits::new(&gpu, vocab, &logits, 3);
            let every = |step: usize| {
                let mut allowed = TokenSet::empty(vocab);
                (0..vocab).step_by(step).for_each(|id| allowed.insert(id));
                allowed
            };
            let masks = [PickMask { pick: 2, allowed: every(3) }, PickMask { pick: 0, allowed: every(5) }];
            let count = mask.write(&gpu, &masks);
            submit(&gpu, |pass| mask.run(pass, count));
            let after: Vec<f32> = gpu.read(&logits, before.len()).unwrap();
            for (at, (after, before)) in (0u32..).zip(after.iter().zip(&before)) {
                let (pick, id) = (at / vocab, at % vocab);
                let is_allowed =
                    masks.iter().find(|mask| mask.pick == pick).is_none_or(|mask| mask.allowed.contains(id));
                let expected = if is_allowed { *before } else { -3e38 };
                assert!((after - expected).abs() <= f32::EPSILON, "{vocab}: {pick} {id}");
            }
        }
    }
}
