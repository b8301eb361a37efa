//! A cache of 8 bits: what it takes, and that all that goes through it works as with 16.

use super::*;

fn eight_bits() -> Settings {
    Settings { kv_format: KvFormat::Q8_0, ..settings() }
}

#[test]
fn a_cache_of_eight_bits_is_counted_as_little_more_than_half_of_one_of_sixteen() {
    let synth = SyntheticModel { head_dim: 64, ..SyntheticModel::default() };
    let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
    let memory = |kv_tokens, kv_format| {
        let settings = Settings { kv_tokens, kv_format, ..settings() };
        EngineSize::estimate(&gguf, &settings).unwrap().memory
    };
    // Two layers of two heads, keys and values.
    let more = |format| (memory(2048, format) - memory(1024, format)) / 1024;
    assert_eq!([KvFormat::F16, KvFormat::Q8_0].map(more), [2 * 2 * 2 * 128, 2 * 2 * 2 * 68]);
}

#[test]
fn where_memory_is_short_a_cache_of_eight_bits_holds_more() {
    let long = SyntheticModel { context: 8192, head_dim: 64, ..SyntheticModel::default() };
    let gguf = Gguf::from_bytes(long.bytes().into()).unwrap();
    let holds = |kv_format, memory_max| {
        let settings = Settings { kv_tokens: 4096, kv_format, memory_max, ..settings() };
        EngineSize::estimate(&gguf, &settings).unwrap()
    };
    let enough = holds(KvFormat::Q8_0, None);
    let [halves, bytes] =
        [KvFormat::F16, KvFormat::Q8_0].map(|format| holds(format, Some(enough.memory)).kv_tokens());
    assert_eq!((halves, bytes), (2176, 4096));
}

#[test]
fn texts_found_in_a_cache_of_eight_bits_or_begun_anew_go_on_with_the_same_tokens() {
    for grain in MODES {
        let start = |settings: Settings| {
            Engine::start_on(shared_as(grain), &gguf(TensorType::F32), &settings).unwrap()
        };
        let (with, without) = (start(eight_bits()), start(Settings { prefix_reuse: false, ..eight_bits() }));
        let text = || GenerationJob { phases: PhaseBudgets::without_thinking(22), ..job(50, 0, 0) };
        let first = reused(&with, text());
        let again = reused(&with, text());
        assert_eq!((first.0, again.0), (0, 48), "{grain:?}");
        let anew = reused(&without, text());
        assert_eq!([&first.1, &again.1], [&anew.1; 2], "{grain:?}");
        with.stop();
        without.stop();
        // Four texts of which each may fill the cache: some have to stop for others.
        let small = start(Settings { kv_tokens: 160, prefix_reuse: false, ..eight_bits() });
        let jobs: Vec<_> = (0..4).map(|n| job(10 + n, 60, 30)).collect();
        let alone: Vec<_> = jobs.iter().map(|job| ids(&small, job.clone())).collect();
        let streams: Vec<_> = jobs.into_iter().map(|job| small.generate(job).unwrap()).collect();
        for (alone, tokens) in alone.into_iter().zip(streams) {
            let among: Vec<_> = finish(tokens).0.iter().map(|token| token.id).collect();
            assert_eq!(alone, among, "{grain:?}");
        }
        assert!(small.load().counts.preempted > 0);
        small.stop();
    }
}

#[test]
fn a_cache_of_eight_bits_moves_logits_by_a_hundredth_of_what_they_differ_by() {
    for mode in MODES {
        let [floats, halves, bytes] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0]
            .map(|format| logits_after_some(TensorType::F32, mode, format));
        let (halves, bytes) = (distance(&halves, &floats), distance(&bytes, &floats));
        assert!(
            (1e-7..1e-3).contains(&halves) && (halves..1e-2).contains(&bytes),
            "{mode:?}: {halves}, {bytes}"
        );
    }
}
