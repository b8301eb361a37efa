//! Sampling and the budgets, on the device: logits in, tokens and their roles out.
//!
//! Greedy at temperature 0, ties to the lowest id. Otherwise top-k, then top-p on what is left (both keep
//! tokens tied with the last one kept), then one draw that depends on the seed, the slot's own count of
//! tokens and the logits, never on the batch.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, ReductionStrategy};
use crate::phases::{PhaseMachine, TokenRole};

/// End-of-text tokens that a slot has room for.
pub(crate) const EOS_MAX: usize = 8;
/// Tokens of hand-off that a slot has room for.
pub const HAND_OFF_MAX: usize = 256;
/// The words of one slot.
pub(crate) const SLOT_WORDS: u32 = 288;
/// The word that holds the slot's last token.
pub(super) const SLOT_LAST: u32 = 9;

/// The most threads that the kernel has room for, in subgroups of four or more.
const THREADS_MAX: u32 = 1024;

/// The largest vocabulary for which 8 threads stay within the 65,536 turns of loops that a software driver lets each take:
/// sample.wgsl counts them.
const VOCAB_OF_EIGHT_THREADS: u32 = 262_144;

const EOS_AT: usize = 17;
const HAND_OFF_AT: usize = 32;
const _: () = assert!(EOS_AT + EOS_MAX <= HAND_OFF_AT && HAND_OFF_AT + HAND_OFF_MAX <= SLOT_WORDS as usize);

/// How tokens are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingParams {
    /// 0 takes the likeliest token always.
    pub temperature: f32,
    /// Only so many of the likeliest tokens; 0 for all.
    pub top_k: u32,
    /// Only the likeliest tokens that together have this probability; 1 for all.
    pub top_p: f32,
    /// Only tokens that are at least so likely as this times the likeliest; 0 for all.
    pub min_p: f32,
    /// Equal seeds draw equal tokens.
    pub seed: u64,
}

/// What was drawn for a pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampledToken {
    pub(crate) id: u32,
    /// As the kernel numbers it; `None` for a number that is no role.
    pub(crate) role: Option<TokenRole>,
    pub(crate) phase: u32,
    /// What was sampled, where something was: `id` unless that was forced.
    pub(crate) sampled: u32,
}

impl SampledToken {
    fn read(words: [u32; 4]) -> Self {
        let roles =
            [TokenRole::Thought, TokenRole::Tag, TokenRole::HandOff, TokenRole::Solution, TokenRole::End];
        Self { id: words[0], role: roles.get(words[1] as usize).copied(), phase: words[2], sampled: words[3] }
    }

    pub(crate) fn all(words: &[[u32; 4]]) -> Vec<Self> {
        words.iter().copied().map(Self::read).collect()
    }
}

/// A slot as the kernel reads it, for a generation as far as it is.
pub(crate) fn slot_words(machine: &PhaseMachine, sampling: SamplingParams) -> Vec<u32> {
    let phases = machine.phases();
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let mut words = vec![0; SLOT_WORDS as usize];
    words[0] = machine.phase() as u32;
    let [thought, handed, solved] = machine.counts();
    (words[1], words[3], words[5]) = (thought, handed, solved);
    words[10] = machine.token_count();
    (words[6], words[25]) = (phases.solution, phases.solution_max.max(phases.solution));
    (words[7], words[8]) = (u32::MAX, u32::MAX);
    if let Some(thinking) = &phases.thinking {
        words[2] = thinking.budget;
        words[4] = count(thinking.hand_off.len());
        words[7] = thinking.start.unwrap_or(u32::MAX);
        words[8] = thinking.end;
        words[HAND_OFF_AT..HAND_OFF_AT + thinking.hand_off.len()].copy_from_slice(&thinking.hand_off);
    }
    // Colder than this is greedy in all but the rounding.
    let temperature = if sampling.temperature < 1e-4 { 0.0 } else { sampling.temperature };
    words[11] = temperature.to_bits();
    words[12] = sampling.top_k;
    words[13] = sampling.top_p.to_bits();
    words[26] = sampling.min_p.to_bits();
    let seed = sampling.seed.to_le_bytes();
    words[14] = u32::from_le_bytes([seed[0], seed[1], seed[2], seed[3]]);
    words[15] = u32::from_le_bytes([seed[4], seed[5], seed[6], seed[7]]);
    words[16] = count(machine.eos().len());
    words[EOS_AT..EOS_AT + machine.eos().len()].copy_from_slice(machine.eos());
    words
}

pub(crate) struct Sampler(Kernel, wgpu::BindGroup);

impl Sampler {
    pub(crate) fn new(
        gpu: &Gpu,
        vocab: u32,
        logits: &wgpu::Buffer,
        picks: &wgpu::Buffer,
        slots: &wgpu::Buffer,
        drawn: &wgpu::Buffer,
    ) -> Self {
        let kernel = kernel(gpu, vocab, threads(gpu, vocab));
        let group = kernel.bind(gpu, &[logits, picks, slots, drawn]);
        Self(kernel, group)
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, picks: u32) {
        self.0.run(pass, &self.1, &[], (picks, 1));
    }
}

fn kernel(gpu: &Gpu, vocab: u32, threads: u32) -> Kernel {
    let constants =
        [("VOCAB", f64::from(vocab)), ("SLOT_WORDS", f64::from(SLOT_WORDS)), ("THREADS", f64::from(threads))];
    let source = KernelSource {
        label: "sample",
        wgsl: &shader(),
        constants: &constants,
        bindings: &[BufferAccess::Read, BufferAccess::Read, BufferAccess::Write, BufferAccess::Write],
        immediates: 0,
    };
    Kernel::new(gpu, &source)
}

fn shader() -> String {
    let parts = [
        include_str!("sample/machine.wgsl"),
        include_str!("sample/tokens.wgsl"),
        include_str!("sample/threshold.wgsl"),
        include_str!("sample.wgsl"),
    ];
    parts.join("\n")
}

/// The threads of one workgroup, which reads a whole vocabulary.
fn threads(gpu: &Gpu, vocab: u32) -> u32 {
    let limits = gpu.device.limits();
    let most = limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
    match gpu.mode.reduction() {
        // A software driver runs them one after another.
        ReductionStrategy::Cooperative if gpu.mode.is_software() => 64,
        ReductionStrategy::Cooperative => most.min(THREADS_MAX),
        // So few are one subgroup, which has nobody to wait for at a barrier. More where they would run out of turns.
        ReductionStrategy::PerLane => most.min(8 * vocab.div_ceil(VOCAB_OF_EIGHT_THREADS)),
    }
}

#[cfg(test)]
mod tests;
