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
pub(crate) const HAND_OFF_MAX: usize = 256;
/// The words of one slot.
pub(crate) const SLOT_WORDS: u32 = 288;
/// The word that holds the slot's last token.
pub(super) const SLOT_LAST: u32 = 9;

/// The most threads that the kernel has room for, in subgroups of four or more.
const THREADS_MAX: u32 = 1024;

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
        let kernel = kernel(gpu, vocab, threads(gpu));
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
fn threads(gpu: &Gpu) -> u32 {
    let limits = gpu.device.limits();
    let most = limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
    match gpu.mode.reduction() {
        // A software driver runs them one after another.
        ReductionStrategy::Cooperative if gpu.mode.is_software() => 64,
        ReductionStrategy::Cooperative => most.min(THREADS_MAX),
        // So few are one subgroup, which has nobody to wait for at a barrier.
        ReductionStrategy::PerLane => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{DeviceMode, in_every_grain, shared, shared_as, submit};
    use crate::ops::testing::numbers;
    use crate::phases::{GenerationPhase, PhaseBudgets, ThinkingPhase};

    const PLAIN: PhaseBudgets = PhaseBudgets { thinking: None, solution: 1_000_000, solution_max: 1_000_000 };

    fn mix(value: u32) -> u32 {
        let state = value.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
        (word >> 22) ^ word
    }

    /// The tokens that pass top-k and top-p, with their weights, obviously.
    fn passing(logits: &[f32], sampling: SamplingParams) -> Vec<(usize, f64)> {
        let mut all: Vec<_> = logits.iter().map(|l| f64::from(*l)).enumerate().collect();
        all.retain(|(_, l)| *l > -1e30);
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        if sampling.top_k > 0 && (sampling.top_k as usize) < all.len() {
            let least = all[sampling.top_k as usize - 1].1;
            all.retain(|(_, l)| *l >= least);
        }
        let top = all[0].1;
        for (_, l) in &mut all {
            *l = ((*l - top) / f64::from(sampling.temperature).max(1e-9)).exp();
        }
        let total: f64 = all.iter().map(|(_, w)| w).sum();
        let mut sum = 0.0;
        let enough = all.iter().position(|(_, w)| {
            sum += w;
            sum >= total * f64::from(sampling.top_p)
        });
        let least = enough.map_or(0.0, |at| all[at].1).max(f64::from(sampling.min_p));
        all.retain(|(_, w)| *w >= least);
        all
    }

    /// The winner of the race among tokens with their weights, and its lead over the second.
    fn reference(passing: &[(usize, f64)], seed: u64, count: u32) -> (u32, f64) {
        let seed = (seed & 0xffff_ffff, seed >> 32);
        let (low, high) = (u32::try_from(seed.0).unwrap(), u32::try_from(seed.1).unwrap());
        let a = mix(low ^ mix(high ^ mix(count)));
        let b = mix(a ^ 0x85eb_ca6b);
        let lead = |(id, weight): &(usize, f64)| {
            let id = u32::try_from(*id).unwrap();
            let u = (f64::from(mix(mix(id ^ a).wrapping_add(b))) + 0.5) / 4_294_967_296.0;
            (id, weight.ln() - (-(-u).ln_1p()).ln())
        };
        let mut leads: Vec<_> = passing.iter().map(lead).collect();
        leads.sort_by(|a, b| b.1.total_cmp(&a.1));
        (leads[0].0, leads[0].1 - leads.get(1).map_or(-1e9, |second| second.1))
    }

    /// Draws `times` tokens in each of the slots, from the slots' own logits.
    fn draw(gpu: &Gpu, logits: &[Vec<f32>], slots: &[Vec<u32>], times: usize) -> Vec<Vec<SampledToken>> {
        draw_by(threads(gpu), gpu, logits, slots, times)
    }

    fn draw_by(
        threads: u32,
        gpu: &Gpu,
        logits: &[Vec<f32>],
        slots: &[Vec<u32>],
        times: usize,
    ) -> Vec<Vec<SampledToken>> {
        let vocab = u32::try_from(logits[0].len()).unwrap();
        let count = u32::try_from(slots.len()).unwrap();
        let picks: Vec<_> = (0..count).map(|slot| [slot, slot]).collect();
        let drawn = gpu.buffer("drawn", u64::from(count) * 16);
        let buffers = [
            &gpu.buffer_with("logits", &logits.concat()),
            &gpu.buffer_with("picks", &picks),
            &gpu.buffer_with("slots", &slots.concat()),
            &drawn,
        ];
        let kernel = kernel(gpu, vocab, threads);
        let group = kernel.bind(gpu, &buffers);
        let sample = Sampler(kernel, group);
        let once = |_| {
            submit(gpu, |pass| sample.run(pass, count));
            SampledToken::all(&gpu.read::<[u32; 4]>(&drawn, slots.len()).unwrap())
        };
        (0..times).map(once).collect()
    }

    fn slot(phases: &PhaseBudgets, sampling: SamplingParams) -> Vec<u32> {
        slot_words(&PhaseMachine::new(phases.clone(), vec![]), sampling)
    }

    const GREEDY: SamplingParams =
        SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
    const WARM: SamplingParams =
        SamplingParams { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0x1234_5678_9abc_def0 };

    /// Draws from the same logits in each of these ways, in every mode.
    fn check(logits: &[f32], ways: &[SamplingParams]) {
        let expected = expected(logits, ways);
        in_every_grain(|gpu| check_by(threads(gpu), gpu, logits, ways, &expected));
    }

    /// What each way draws, and by which lead, time after time.
    fn expected(logits: &[f32], ways: &[SamplingParams]) -> Vec<Vec<(u32, f64)>> {
        let draws = |way: &SamplingParams| {
            let passing = passing(logits, *way);
            (0..16).map(|count| reference(&passing, way.seed, count)).collect()
        };
        ways.iter().map(draws).collect()
    }

    fn check_by(
        threads: u32,
        gpu: &Gpu,
        logits: &[f32],
        ways: &[SamplingParams],
        expected: &[Vec<(u32, f64)>],
    ) {
        let slots: Vec<_> = ways.iter().map(|way| slot(&PLAIN, *way)).collect();
        let all = draw_by(threads, gpu, &vec![logits.to_vec(); ways.len()], &slots, expected[0].len());
        for (count, drawn) in all.iter().enumerate() {
            for ((drawn, way), expected) in drawn.iter().zip(ways).zip(expected) {
                let (id, lead) = expected[count];
                // Where two tokens run neck and neck, rounding may decide.
                let agrees = drawn.id == id || lead < 1e-3;
                assert!(agrees, "{way:?}, draw {count} of {}: {}, not {id}", logits.len(), drawn.id);
            }
        }
    }

    /// Each row of logits with the token that is to win.
    fn greedy(rows: &[(Vec<f32>, usize)]) {
        let (logits, winners): (Vec<_>, Vec<_>) = rows.iter().cloned().unzip();
        in_every_grain(|gpu| {
            let drawn = draw(gpu, &logits, &vec![slot(&PLAIN, GREEDY); rows.len()], 1);
            let ids: Vec<_> = drawn[0].iter().map(|drawn| drawn.id as usize).collect();
            assert_eq!(ids, winners, "of {}", logits[0].len());
        });
    }

    fn spread(vocab: u32, factor: f32) -> Vec<f32> {
        numbers(11, vocab).iter().map(|n| n * factor).collect()
    }

    #[test]
    fn the_likeliest_token_wins_at_temperature_zero_and_the_lowest_of_equals() {
        for vocab in [1u32, 5, 255, 257, 1000, 5003] {
            let mut logits = numbers(9, vocab);
            let last = logits.len() - 1;
            let mut with = |at: usize, logit| {
                logits[at] = logit;
                logits.clone()
            };
            let rows = [with(last, 3.0), with(last / 3, 2.999_999), with(last / 2, 3.0)];
            greedy(&rows.into_iter().zip([last, last, last / 2]).collect::<Vec<_>>());
        }
        greedy(&[(vec![f32::NAN, f32::NEG_INFINITY, -5.0, f32::NAN], 2)]);
    }

    #[test]
    fn draws_agree_with_the_obvious_version() {
        let ways = [
            WARM,
            SamplingParams { temperature: 0.3, ..WARM },
            SamplingParams { top_k: 1, ..WARM },
            SamplingParams { top_k: 7, ..WARM },
            SamplingParams { top_k: 1_000_000, ..WARM },
            SamplingParams { top_p: 0.5, ..WARM },
            SamplingParams { top_p: 1e-6, ..WARM },
            SamplingParams { top_p: 0.0, ..WARM },
            SamplingParams { top_p: 0.999_9, ..WARM },
            SamplingParams { min_p: 0.2, ..WARM },
            SamplingParams { min_p: 1.0, temperature: 2.0, ..WARM },
            SamplingParams { temperature: 2.0, top_k: 40, top_p: 0.9, min_p: 0.0, seed: 7 },
            SamplingParams { temperature: 0.6, top_k: 20, top_p: 0.95, ..WARM },
        ];
        for vocab in [1, 3, 64, 301, 1000, 9001] {
            check(&spread(vocab, 6.0), &ways);
        }
        // Further apart than the bins reach.
        check(&spread(9001, 600.0), &ways);
    }

    /// As on a real device. Threads that have no token, and more than one turn for each.
    #[test]
    fn workgroups_of_many_threads_draw_the_same() {
        let ways = [
            GREEDY,
            WARM,
            SamplingParams { temperature: 0.6, top_k: 20, top_p: 0.95, ..WARM },
            SamplingParams { temperature: 0.7, top_p: 0.9, ..WARM },
            SamplingParams { top_k: 3000, top_p: 0.9, ..WARM },
        ];
        for vocab in [999, 10_001] {
            let logits = spread(vocab, 6.0);
            let expected = expected(&logits, &ways);
            for threads in [THREADS_MAX, 96] {
                check_by(threads, &shared_as(DeviceMode::Gpu), &logits, &ways, &expected);
            }
        }
    }

    /// A software driver lets a thread take 65,536 turns of loops in all.
    #[test]
    fn a_large_vocabulary_is_read_to_its_end() {
        let ways = [
            GREEDY,
            WARM,
            SamplingParams { temperature: 0.6, top_k: 20, top_p: 0.95, ..WARM },
            SamplingParams { top_k: 50, min_p: 0.01, ..WARM },
            SamplingParams { temperature: 0.7, top_p: 0.9, ..WARM },
        ];
        let logits = spread(151_937, 8.0);
        let gpu = shared_as(DeviceMode::SoftwareByLanes);
        check_by(threads(&gpu), &gpu, &logits, &ways, &expected(&logits, &ways));
    }

    /// The list holds 2,048 tokens.
    #[test]
    fn more_tokens_than_can_be_listed_are_drawn_from_all_the_same() {
        let ways = [
            SamplingParams { top_k: 2048, ..WARM },
            SamplingParams { top_k: 2049, ..WARM },
            SamplingParams { top_k: 8000, temperature: 0.7, top_p: 0.8, ..WARM },
            SamplingParams { top_p: 0.9, ..WARM },
            SamplingParams { top_p: 0.5, temperature: 5.0, ..WARM },
            SamplingParams { top_k: 20, top_p: 0.95, ..WARM },
        ];
        // Spread over many bins, all in a few, nearly all in one.
        for factor in [3.0, 0.3, 0.003] {
            check(&spread(20_011, factor), &ways);
        }
    }

    #[test]
    fn tokens_tied_with_the_last_that_passes_pass_too() {
        let ways = [
            WARM,
            SamplingParams { top_k: 1, ..WARM },
            SamplingParams { top_k: 2500, ..WARM },
            SamplingParams { top_p: 0.3, ..WARM },
            SamplingParams { top_p: 0.77, temperature: 0.5, ..WARM },
            SamplingParams { top_k: 3, top_p: 0.5, ..WARM },
            SamplingParams { min_p: 0.3, ..WARM },
        ];
        check(&vec![2.5; 7001], &ways);
        check(&[-7.0; 50], &ways);
        let steps = |n: f32| (n * 4.0).round() * 0.4;
        check(&spread(7001, 1.0).into_iter().map(steps).collect::<Vec<_>>(), &ways);
        check(&spread(90, 1.0).into_iter().map(steps).collect::<Vec<_>>(), &ways);
    }

    #[test]
    fn logits_that_are_no_numbers_are_never_drawn() {
        let ways = [
            GREEDY,
            WARM,
            SamplingParams { top_k: 20, top_p: 0.95, ..WARM },
            SamplingParams { top_k: 4000, ..WARM },
            SamplingParams { top_p: 0.9, ..WARM },
            SamplingParams { top_p: 0.999_999, ..WARM },
        ];
        for vocab in [41, 6001] {
            let mut logits = spread(vocab, 5.0);
            for (at, logit) in logits.iter_mut().enumerate() {
                *logit = [*logit, f32::NAN, f32::NEG_INFINITY, -3e38, *logit][at % 5];
            }
            check(&logits, &ways);
            // Only two are left.
            logits.iter_mut().skip(7).for_each(|logit| *logit = f32::NEG_INFINITY);
            check(&logits, &ways);
        }
        greedy(&[(vec![f32::NAN; 3000], 0)]);
    }

    #[test]
    fn tokens_are_drawn_as_often_as_they_are_likely() {
        // 64 slots that differ in their seeds only, 16 draws each.
        let logits = vec![0.0, 2f32.ln(), 4f32.ln(), -1e9, 1f32.ln()];
        let slots: Vec<_> = (0..64).map(|seed| slot(&PLAIN, SamplingParams { seed, ..WARM })).collect();
        let drawn = draw(&shared(), &vec![logits; 64], &slots, 16).concat();
        for (id, share) in [(0, 1.0 / 8.0), (1, 2.0 / 8.0), (2, 4.0 / 8.0), (3, 0.0), (4, 1.0 / 8.0)] {
            let seen = drawn.iter().filter(|drawn| drawn.id == id).count() as f64 / drawn.len() as f64;
            assert!((seen - share).abs() < 0.05, "token {id}: {seen}, not {share}");
        }
    }

    #[test]
    fn a_slot_draws_the_same_among_others_as_alone() {
        let ids = |drawn: &[Vec<SampledToken>], at: usize| drawn.iter().map(|d| d[at].id).collect::<Vec<_>>();
        for (vocab, top_k) in [(500, 50), (6007, 50), (6007, 0)] {
            let logits = spread(vocab, 4.0);
            let warm = |seed| slot(&PLAIN, SamplingParams { top_k, top_p: 0.95, seed, ..WARM });
            in_every_grain(|gpu| {
                let alone = draw(gpu, std::slice::from_ref(&logits), &[warm(5)], 8);
                let slots = [warm(1), slot(&PLAIN, GREEDY), warm(5)];
                let among = draw(gpu, &vec![logits.clone(); 3], &slots, 8);
                assert_eq!(ids(&alone, 0), ids(&among, 2));
                assert_ne!(ids(&among, 0), ids(&among, 2));
            });
        }
    }

    /// A logit row for each slot that makes it sample this token; a banned one falls to the next.
    fn wanting(id: u32) -> Vec<f32> {
        let rank = |token: u32| -f32::from(u8::try_from((token + 8 - id) % 8).unwrap());
        (0..8).map(rank).collect()
    }

    /// Both machines take the same random tokens, many generations at once, and must never differ.
    #[test]
    fn the_kernel_keeps_budgets_exactly_as_the_specification_does() {
        let mut state = 99;
        let mut pick = |below: usize| {
            let at = (stint_gguf::synth::noise(&mut state) + 1.0) / 2.0 * below as f32;
            (0..below).rev().find(|n| *n as f32 <= at).unwrap_or(0)
        };
        let small = |n: usize| u32::try_from(n).unwrap();
        let mut machines: Vec<_> = (0..200)
            .map(|_| {
                let hand_off = [vec![], vec![2], vec![6, 7, 2]][pick(3)].clone();
                let start = [None, Some(1)][pick(2)];
                let thinking = ThinkingPhase {
                    budget: small(pick(5)),
                    hand_off,
                    start,
                    end: 2,
                    open: pick(2) == 0,
                    blanks: [].into(),
                };
                let thinking = (pick(6) > 0).then_some(thinking);
                let eos = [vec![], vec![3], vec![3, 4]][pick(3)].clone();
                let least = u32::from(thinking.as_ref().is_some_and(|thinking| !thinking.open));
                let solution = small(pick(5)).max(least);
                let solution_most = solution + small(pick(4));
                PhaseMachine::new(PhaseBudgets { thinking, solution, solution_max: solution_most }, eos)
            })
            .collect();
        let gpu = shared();
        let count = small(machines.len());
        let words: Vec<_> = machines.iter().flat_map(|machine| slot_words(machine, GREEDY)).collect();
        let (slots, drawn) = (gpu.buffer_with("slots", &words), gpu.buffer("drawn", u64::from(count) * 16));
        let logits = gpu.buffer("logits", u64::from(count) * 32);
        let picks: Vec<_> = (0..count).map(|slot| [slot, slot]).collect();
        let sample = Sampler::new(&gpu, 8, &logits, &gpu.buffer_with("picks", &picks), &slots, &drawn);
        for _ in 0..14 {
            let wanted: Vec<_> = machines.iter().map(|_| small(pick(8))).collect();
            let rows: Vec<f32> = wanted.iter().flat_map(|id| wanting(*id)).collect();
            gpu.queue.write_buffer(&logits, 0, bytemuck::cast_slice(&rows));
            submit(&gpu, |pass| sample.run(pass, count));
            let drawn = SampledToken::all(&gpu.read::<[u32; 4]>(&drawn, machines.len()).unwrap());
            for ((machine, drawn), mut wanted) in machines.iter_mut().zip(drawn).zip(wanted) {
                while machine.banned().contains(&Some(wanted)) {
                    wanted = (wanted + 1) % 8;
                }
                let Some(step) = machine.accept(wanted) else { continue };
                assert_eq!((drawn.id, drawn.role), (step.id, Some(step.role)), "{machine:?}");
                assert_eq!(drawn.phase, machine.phase() as u32, "{machine:?}");
            }
        }
        assert!(machines.iter().all(|machine| machine.phase() == GenerationPhase::Done));
    }
}
