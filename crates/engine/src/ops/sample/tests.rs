use std::f32::consts::PI;

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

/// The tokens that may be drawn, the likeliest first.
fn ranked(logits: &[f32]) -> Vec<(usize, f64)> {
    let mut all: Vec<_> = logits.iter().map(|l| f64::from(*l)).enumerate().collect();
    all.retain(|(_, l)| *l > -1e30);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// Those that pass top-k and top-p, with their weights, obviously.
fn passing(ranked: &[(usize, f64)], sampling: SamplingParams) -> Vec<(usize, f64)> {
    let mut all = ranked.to_vec();
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
    let (mut winner, mut first, mut second) = (0, -1e9, -1e9);
    for (id, weight) in passing {
        let id = u32::try_from(*id).unwrap();
        let u = (f64::from(mix(mix(id ^ a).wrapping_add(b))) + 0.5) / 4_294_967_296.0;
        let lead = weight.ln() - (-(-u).ln_1p()).ln();
        if lead > first {
            (winner, first, second) = (id, lead, first);
        } else if lead > second {
            second = lead;
        }
    }
    (winner, first - second)
}

/// Draws `times` tokens in each of the slots, from the slots' own logits.
fn draw(gpu: &Gpu, logits: &[Vec<f32>], slots: &[Vec<u32>], times: usize) -> Vec<Vec<SampledToken>> {
    draw_by(threads(gpu, vocab(&logits[0])), gpu, logits, slots, times)
}

fn draw_by(
    threads: u32,
    gpu: &Gpu,
    logits: &[Vec<f32>],
    slots: &[Vec<u32>],
    times: usize,
) -> Vec<Vec<SampledToken>> {
    let count = u32::try_from(slots.len()).unwrap();
    let picks: Vec<_> = (0..count).map(|slot| [slot, slot]).collect();
    let drawn = gpu.buffer("drawn", u64::from(count) * 16);
    let buffers = [
        &gpu.buffer_with("logits", &logits.concat()),
        &gpu.buffer_with("picks", &picks),
        &gpu.buffer_with("slots", &slots.concat()),
        &drawn,
    ];
    let kernel = kernel(gpu, vocab(&logits[0]), threads);
    let group = kernel.bind(gpu, &buffers);
    let sample = Sampler(kernel, group);
    let once = |_| {
        submit(gpu, |pass| sample.run(pass, count));
        SampledToken::all(&gpu.read::<[u32; 4]>(&drawn, slots.len()).unwrap())
    };
    (0..times).map(once).collect()
}

fn vocab(logits: &[f32]) -> u32 {
    u32::try_from(logits.len()).unwrap()
}

fn slot(phases: &PhaseBudgets, sampling: SamplingParams) -> Vec<u32> {
    slot_words(&PhaseMachine::new(phases.clone(), vec![]), sampling)
}

const GREEDY: SamplingParams = SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
const WARM: SamplingParams =
    SamplingParams { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0x1234_5678_9abc_def0 };

/// Draws from each row of logits in each of these ways, in every mode. One kernel draws from all, since it takes long to make.
fn check(rows: &[Vec<f32>], ways: &[SamplingParams]) {
    let expected = expected(rows, ways, 16);
    in_every_grain(|gpu| check_by(threads(gpu, vocab(&rows[0])), gpu, rows, ways, &expected));
}

/// As on a software driver, whose threads may take few turns.
fn check_large(logits: Vec<f32>, ways: &[SamplingParams]) {
    let gpu = shared_as(DeviceMode::SoftwareByLanes);
    let threads = threads(&gpu, vocab(&logits));
    let rows = [logits];
    check_by(threads, &gpu, &rows, ways, &expected(&rows, ways, 4));
}

/// What each way draws from each row, and by which lead, time after time.
fn expected(rows: &[Vec<f32>], ways: &[SamplingParams], draws: u32) -> Vec<Vec<(u32, f64)>> {
    let of_row = |logits: &Vec<f32>| {
        let ranked = ranked(logits);
        let draws = |way: &SamplingParams| {
            let passing = passing(&ranked, *way);
            (0..draws).map(|count| reference(&passing, way.seed, count)).collect()
        };
        ways.iter().map(draws).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}

fn check_by(
    threads: u32,
    gpu: &Gpu,
    rows: &[Vec<f32>],
    ways: &[SamplingParams],
    expected: &[Vec<(u32, f64)>],
) {
    let pairs: Vec<_> = rows.iter().flat_map(|row| ways.iter().map(move |way| (row.clone(), *way))).collect();
    let (logits, ways): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let slots: Vec<_> = ways.iter().map(|way| slot(&PLAIN, *way)).collect();
    let all = draw_by(threads, gpu, &logits, &slots, expected[0].len());
    for (count, drawn) in all.iter().enumerate() {
        for (at, (drawn, way)) in drawn.iter().zip(&ways).enumerate() {
            let (id, lead) = expected[at][count];
            // Where two tokens run neck and neck, rounding may decide.
            let agrees = drawn.id == id || lead < 1e-3;
            assert!(agrees, "{way:?}, draw {count} of {}: {}, not {id}", logits[0].len(), drawn.id);
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
    for vocab in [1u32, 5, 257, 5003] {
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
    for vocab in [1, 3, 64, 301] {
        check(&[spread(vocab, 6.0)], &ways);
    }
    // The second is further apart than the bins reach.
    check(&[spread(9001, 6.0), spread(9001, 600.0)], &ways);
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
        let logits = [spread(vocab, 6.0)];
        let expected = expected(&logits, &ways, 16);
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
    check_large(spread(151_937, 8.0), &ways);
}

/// Normally distributed, with one above them all.
fn bell(vocab: u32) -> Vec<f32> {
    let one = |(a, b): (f32, f32)| 2.5 * (-2.0 * (0.5 + 0.499_999 * a).ln()).sqrt() * (b * PI).cos();
    let mut logits: Vec<_> = numbers(21, vocab).into_iter().zip(numbers(22, vocab)).map(one).collect();
    logits[vocab as usize / 3] = 18.0;
    logits
}

/// The bin of the last that passes holds more tokens than the list.
#[test]
fn a_flat_and_large_vocabulary_is_read_to_its_end() {
    let ways = [
        SamplingParams { top_p: 0.999, ..WARM },
        SamplingParams { temperature: 1.5, top_p: 0.95, ..WARM },
        SamplingParams { temperature: 2.0, top_p: 0.9, ..WARM },
        SamplingParams { temperature: 1.5, top_k: 60_000, top_p: 0.97, ..WARM },
    ];
    check_large(bell(151_937), &ways);
    check_large(bell(262_144), &ways);
    // More threads than eight.
    check_large(bell(262_145), &ways);
}

const NARROW: [SamplingParams; 8] = [
    SamplingParams { top_k: 1, ..WARM },
    SamplingParams { top_k: 5, ..WARM },
    SamplingParams { top_k: 2000, ..WARM },
    SamplingParams { top_k: 200_000, ..WARM },
    SamplingParams { top_p: 1.3e-5, ..WARM },
    SamplingParams { top_p: 0.45, ..WARM },
    SamplingParams { top_k: 200_000, top_p: 1.3e-5, ..WARM },
    SamplingParams { top_k: 200_000, top_p: 0.97, ..WARM },
];

/// All distinct, and all in one bin.
#[test]
fn a_large_vocabulary_of_logits_that_are_nearly_equal_is_read_to_its_end() {
    let logits: Vec<_> =
        (0..262_144u32).map(|n| f32::from_bits(0x3e80_0000 + n.wrapping_mul(40_503) % 262_144)).collect();
    check_large(logits, &NARROW);
}

/// The most turns that a draw can take: see sample.wgsl. From top to bottom the bin has nearly all numbers around 0, so that its
/// orders are read four times, both for top-k and for top-p. Until the last time all logits are in one part.
#[test]
fn a_large_vocabulary_is_read_to_its_end_with_the_most_turns() {
    let mut logits: Vec<_> = (0..262_144u32).map(|n| f32::from_bits(0x3a80_0000 + mix(n) % 2048)).collect();
    logits[200_000] = f32::from_bits(0x3b9f_ffff);
    check_large(logits, &NARROW);
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
    check(&[3.0, 0.3, 0.003].map(|factor| spread(20_011, factor)), &ways);
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
    let steps = |n: f32| (n * 4.0).round() * 0.4;
    for vocab in [90, 7001] {
        let stairs = spread(vocab, 1.0).into_iter().map(steps).collect();
        check(&[vec![2.5; vocab as usize], vec![-7.0; vocab as usize], stairs], &ways);
    }
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
        let many = logits.clone();
        // Only two are left.
        logits.iter_mut().skip(7).for_each(|logit| *logit = f32::NEG_INFINITY);
        check(&[many, logits], &ways);
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
    for (vocab, top_k) in [(6007, 50), (6007, 0)] {
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
                spelled: None,
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
