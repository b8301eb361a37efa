//! Tokens per second of the local engine, beside what the device could do at most.
//!
//! `cargo bench --bench engine -- MODEL.gguf`; without a file, a random model is made. Decoding reads every
//! weight once a step, so its limit is the bandwidth of a kernel that only reads, measured in the same run.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use stint_engine::{
    CacheScope, Engine, GenerationEvent, GenerationJob, PhaseBudgets, SamplingParams, Settings,
    TokenPenalties, TokenStream, probe,
};
use stint_gguf::Gguf;
use stint_gguf::TensorType;
use stint_gguf::synth::SyntheticModel;

/// A job that answers with exactly so many tokens; its prompt differs from other seeds'.
fn job(seed: u32, prompt: u32, solution: u32, vocab: u32) -> GenerationJob {
    let sampling = SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
    let prompt = (0..prompt).map(|n| (n * 31 + seed * 17) % vocab).collect();
    GenerationJob {
        prompt,
        sampling,
        phases: PhaseBudgets::without_thinking(solution),
        eos: vec![],
        penalties: TokenPenalties::default(),
        constraint: None,
        logprobs: None,
        scope: CacheScope::default(),
        resumes: false,
    }
}

fn finish(mut tokens: TokenStream) -> Result<(), Box<dyn Error>> {
    while let Some(event) = tokens.blocking_next() {
        if let GenerationEvent::Failed(error) = event {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Seconds until so many equal jobs at once are done: the best of three.
fn seconds(engine: &Engine, sequences: u32, prompt: u32, solution: u32) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let begin = Instant::now();
        let jobs = (0..sequences).map(|seed| engine.generate(job(seed, prompt, solution, engine.vocab())));
        for tokens in jobs.collect::<Result<Vec<_>, _>>()? {
            finish(tokens)?;
        }
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// The waits between the tokens of four texts, in seconds: first of the four alone, then while a prompt of 512 tokens is read
/// beside them. Each but one in twenty is at most so long.
fn gaps(engine: &Engine) -> Result<[f64; 2], Box<dyn Error>> {
    let texts: Vec<_> =
        (0..4).map(|seed| engine.generate(job(seed, 20, 400, engine.vocab()))).collect::<Result<_, _>>()?;
    let (sender, times) = std::sync::mpsc::channel();
    let readers: Vec<_> = texts
        .into_iter()
        .map(|mut tokens| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut last = None;
                while let Some(GenerationEvent::PromptRead { .. } | GenerationEvent::Token(_)) =
                    tokens.blocking_next()
                {
                    let now = Instant::now();
                    let gap = last.replace(now).map(|before| now - before);
                    if gap.is_some_and(|gap| sender.send((now, gap)).is_err()) {
                        return;
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let alone: Vec<_> = times.iter().take(200).collect();
    let begin = Instant::now();
    let mut long = engine.generate(job(9, 512, 1, engine.vocab()))?;
    long.blocking_next();
    let end = Instant::now();
    let beside: Vec<_> = times.try_iter().filter(|(at, _)| (begin..=end).contains(at)).collect();
    drop(times);
    readers.into_iter().for_each(|reader| drop(reader.join()));
    Ok([alone, beside].map(|gaps| {
        let mut gaps: Vec<_> = gaps.into_iter().map(|(_, gap)| gap.as_secs_f64()).collect();
        gaps.sort_by(f64::total_cmp);
        gaps.get(gaps.len() * 19 / 20).copied().unwrap_or(f64::NAN)
    }))
}

/// When the first tokens of eight texts came that may each fill the cache, in seconds.
fn first_tokens(engine: &Engine) -> Result<Vec<f64>, Box<dyn Error>> {
    let room = engine.context() - 40;
    let begin = Instant::now();
    let texts: Vec<_> = (0..8)
        .map(|seed| engine.generate(job(seed + 20, 20, room, engine.vocab())))
        .collect::<Result<_, _>>()?;
    let mut firsts = Vec::new();
    for mut tokens in texts {
        tokens.blocking_next();
        firsts.push(begin.elapsed().as_secs_f64());
    }
    Ok(firsts)
}

/// Bytes of memory that the process has now.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// What texts have to wait for that run beside others.
fn print_beside_others(engine: &Engine) -> Result<(), Box<dyn Error>> {
    if engine.context() >= 1024 {
        let [alone, beside] = gaps(engine)?;
        println!(
            "a token of four comes within {:.1} ms, beside a prompt of 512 tokens within {:.1} ms: {:.1} times (95 %)",
            alone * 1e3,
            beside * 1e3,
            beside / alone
        );
    }
    let firsts = first_tokens(engine)?;
    let shown: Vec<_> = firsts.iter().map(|first| format!("{first:.2}")).collect();
    println!("first tokens of eight texts that may each fill the cache: {} s", shown.join(", "));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` passes `--bench`.
    let path = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).map(PathBuf::from);
    let gguf = match path {
        Some(path) => Gguf::open(&path)?,
        None => {
            let wide = SyntheticModel {
                hidden: 512,
                layers: 8,
                heads: 8,
                head_dim: 64,
                feed_forward: 1536,
                ..SyntheticModel::default()
            };
            Gguf::from_bytes(
                SyntheticModel { vocab: 8192, context: 2048, kind: TensorType::Q8_0, ..wide }.bytes().into(),
            )?
        }
    };
    let settings = Settings {
        sequences: 32,
        kv_tokens: 4096,
        allow_cpu: true,
        // Every prompt is read anew.
        prefix_reuse: false,
        ..Settings::default()
    };
    let engine = Engine::start(&gguf, &settings)?;
    let long = engine.context() * 3 / 4;
    let short = (engine.context() / 2).min(96);
    let bandwidth = probe::bandwidth()?;
    println!("{} ({})", engine.device().name, engine.device().driver);
    println!("read kernel {:.2} GB/s, weights {:.2} MB", bandwidth / 1e9, engine.weight_bytes() as f64 / 1e6);
    for sequences in [1, 4] {
        let prefill = f64::from(sequences * long) / seconds(&engine, sequences, long, 1)?;
        // Without the first step, which is the prompt's.
        let first = seconds(&engine, sequences, 4, 1)?;
        let rest = seconds(&engine, sequences, 4, short + 1)? - first;
        let steps = f64::from(short) / rest;
        let share = steps * engine.weight_bytes() as f64 / bandwidth;
        println!(
            "{sequences} at once: prefill {prefill:.0} tokens/s, decode {:.0} tokens/s, {:.1} % of the read kernel's bandwidth",
            steps * f64::from(sequences),
            100.0 * share
        );
    }
    // Short questions with longer answers, as the reasoner is asked them.
    for sequences in [1, 8, 32] {
        let rate = f64::from(sequences * 80) / seconds(&engine, sequences, 20, 60)?;
        println!("{sequences} at once, 20 tokens in and 60 out: {rate:.0} tokens/s in all");
    }
    print_beside_others(&engine)?;
    println!("{:.0} MB resident", resident().unwrap_or_default() as f64 / 1e6);
    engine.stop();
    Ok(())
}
