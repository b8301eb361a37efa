//! Model files whose weights are damaged.

use super::*;

/// A file of random weights, and where the numbers of one row of a tensor are in it.
fn file_and_row(tensor: &str, row: usize) -> (Vec<u8>, std::ops::Range<usize>) {
    let file = SyntheticModel { tied: false, ..SyntheticModel::default() }.bytes();
    let gguf = Gguf::from_bytes(file.clone().into()).unwrap();
    let tensor = gguf.tensor(tensor).unwrap();
    let length = tensor.columns * size_of::<f32>();
    let rows = tensor.read().unwrap();
    let numbers = &rows[row * length..][..length];
    let at = file.windows(length).position(|window| window == numbers).unwrap();
    (file, at..at + length)
}

/// The same file with NaN for one number of that row.
fn damaged(tensor: &str, row: usize) -> Gguf {
    let (mut file, place) = file_and_row(tensor, row);
    file[place][..size_of::<f32>()].copy_from_slice(&f32::NAN.to_le_bytes());
    Gguf::from_bytes(file.into()).unwrap()
}

#[test]
fn a_model_that_computes_no_numbers_is_refused_when_it_is_loaded() {
    for tensor in ["output_norm.weight", "blk.1.ffn_down.weight", "output.weight"] {
        let error = Engine::start_on(shared(), &damaged(tensor, 0), &settings()).err();
        assert!(matches!(error, Some(EngineError::NotANumber)), "{tensor}: {error:?}");
    }
}

#[test]
fn a_text_of_which_no_numbers_are_computed_fails_and_others_notice_nothing() {
    let whole = Gguf::from_bytes(file_and_row("output_norm.weight", 0).0.into()).unwrap();
    let whole = Engine::start_on(shared(), &whole, &settings()).unwrap();
    let fine = || job(3, 7, 5);
    let expected = ids(&whole, fine());
    let bad = (4..60).find(|id| !expected.contains(id)).unwrap();
    let engine =
        Engine::start_on(shared(), &damaged("token_embd.weight", bad as usize), &settings()).unwrap();
    let drawn = SamplingParams { temperature: 0.8, top_k: 20, top_p: 0.9, ..GREEDY };
    for (sampling, logprobs) in [(GREEDY, None), (drawn, None), (GREEDY, Some(2))] {
        // Token 0, which is what a draw among no numbers takes, would end the text.
        let broken = GenerationJob { prompt: vec![1, bad], sampling, logprobs, eos: vec![0], ..job(1, 4, 4) };
        let broken = engine.generate(broken).unwrap();
        assert_eq!(ids(&engine, fine()), expected);
        let (steps, last) = finish(broken);
        assert!(matches!(last, GenerationEvent::Failed(EngineError::NotANumber)), "{last:?}");
        assert_eq!(steps, []);
    }
}

/// Of a file that was mapped, the first read behind its new end would end the process.
#[test]
fn a_file_that_is_cut_short_or_written_to_while_it_is_loaded_is_an_error() {
    let check = |name: &str, change: &dyn Fn(&std::fs::File), expected: &str| {
        let path = std::env::temp_dir().join(format!("stint-engine-{name}-{}.gguf", std::process::id()));
        std::fs::write(&path, SyntheticModel::default().bytes()).unwrap();
        let opened = Gguf::open(&path).unwrap();
        change(&std::fs::File::options().write(true).open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let error = Engine::start_on(shared(), &opened, &settings()).err().unwrap();
        assert!(error.to_string().contains(expected), "{name}: {error:?}");
    };
    check("cut", &|file| file.set_len(8_000).unwrap(), "ended while it was read");
    let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(2);
    check("written", &|file| file.set_modified(later).unwrap(), "changed while it was read");
}
