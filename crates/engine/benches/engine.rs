//! Measures the local engine on one file. Prints one JSON object a line; `load-tests/engine` makes a table of them.
//!
//! `cargo bench -p stint-engine --bench engine -- MODEL.gguf --decode 1,8 --prefill 96,512 --step 16,2048`
//! measures those; `--beside` waits beside a long prompt, `--questions` short questions with longer answers; `--kernels 128,8192`
//! tells how long each kernel takes at those positions, by the device's clock. `--decoded` is how many tokens are decoded, `--sampled`
//! draws them as Qwen3 wants it, `--prefill-chunk` is how many tokens of a prompt are read at once. `--grain` forces `cooperative`,
//! `cooperative-f32` or `lanes`, `--kv` is `f16`, `f32` or `q8_0`. `--make 0.6b:Q8_0:28 MODEL.gguf` writes a random model of that shape,
//! format and number of layers instead. Without a file a small random model is measured.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stint_engine::probe::{self, DeviceUse, Grain, StepProbe};
use stint_engine::{
    CacheScope, Engine, GenerationEvent, GenerationJob, JobPriority, KvFormat, PhaseBudgets, SamplingParams,
    Settings, TokenPenalties, TokenStream, describe,
};
use stint_gguf::synth::SyntheticModel;
use stint_gguf::{Gguf, TensorType};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Tokens that each sequence decodes where decoding is timed, unless the command line says how many.
const DECODED: u32 = 16;

/// Steps at one position are repeated for so long, so that a clock of hundredths of a second does.
const STEPS_MIN: Duration = Duration::from_secs(2);

/// What to measure.
#[derive(Default)]
struct Plan {
    file: Option<PathBuf>,
    make: Option<String>,
    grain: Option<Grain>,
    kv_format: KvFormat,
    decode: Vec<u32>,
    prefill: Vec<u32>,
    step: Vec<u32>,
    kernels: Vec<u32>,
    /// Tokens of a prompt that are read at once; without it as many as the device suits.
    prefill_chunk: Option<u32>,
    decoded: Option<u32>,
    /// As Qwen3 wants it, instead of the likeliest token always.
    sampled: bool,
    beside: bool,
    questions: bool,
}

impl Plan {
    fn read(arguments: impl Iterator<Item = String>) -> Outcome<Plan> {
        let mut plan = Plan::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} wants a value"));
            match argument.as_str() {
                // `cargo bench` passes it.
                "--bench" => {}
                "--make" => plan.make = Some(value()?),
                "--grain" => {
                    plan.grain = Some(match value()?.as_str() {
                        "cooperative" => Grain::Cooperative,
                        "cooperative-f32" => Grain::CooperativeFloats,
                        "lanes" => Grain::PerLane,
                        other => return Err(format!("no grain is called {other}").into()),
                    });
                }
                "--kv" => {
                    plan.kv_format = match value()?.as_str() {
                        "f16" => KvFormat::F16,
                        "f32" => KvFormat::F32,
                        "q8_0" => KvFormat::Q8_0,
                        other => return Err(format!("no cache is called {other}").into()),
                    };
                }
                "--decode" => plan.decode = numbers(&value()?)?,
                "--prefill" => plan.prefill = numbers(&value()?)?,
                "--step" => plan.step = numbers(&value()?)?,
                "--prefill-chunk" => plan.prefill_chunk = Some(value()?.parse()?),
                "--decoded" => plan.decoded = Some(value()?.parse()?),
                "--sampled" => plan.sampled = true,
                "--kernels" => plan.kernels = numbers(&value()?)?,
                "--beside" => plan.beside = true,
                "--questions" => plan.questions = true,
                _ => plan.file = Some(argument.into()),
            }
        }
        if plan.file.is_none() && plan.make.is_none() {
            plan.decode = vec![1, 4, 8, 32];
            plan.prefill = vec![96, 512];
            plan.step = vec![16, 1024];
            (plan.beside, plan.questions) = (true, true);
        }
        Ok(plan)
    }

    fn open(&self) -> Outcome<Gguf> {
        let Some(file) = &self.file else {
            let small = SyntheticModel { layers: 8, ..shape("small")? };
            let bytes = SyntheticModel { kind: TensorType::Q8_0, ..small }.bytes();
            return Ok(Gguf::from_bytes(bytes.into())?);
        };
        Ok(Gguf::open(file)?)
    }
}

fn numbers(text: &str) -> Outcome<Vec<u32>> {
    Ok(text.split(',').filter(|number| !number.is_empty()).map(str::parse).collect::<Result<_, _>>()?)
}

/// A shape by its name.
fn shape(name: &str) -> Outcome<SyntheticModel> {
    let plain = SyntheticModel {
        // llama.cpp reads no file without them.
        texts: vec![("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", "qwen2")],
        merges: vec!["t 0"],
        ..SyntheticModel::default()
    };
    match name {
        "small" => Ok(SyntheticModel {
            hidden: 512,
            heads: 8,
            head_dim: 64,
            feed_forward: 1536,
            vocab: 8192,
            context: 2048,
            ..plain
        }),
        "0.6b" => Ok(SyntheticModel {
            hidden: 1024,
            heads: 16,
            kv_heads: 8,
            head_dim: 128,
            feed_forward: 3072,
            vocab: 151_936,
            context: 40_960,
            ..plain
        }),
        "8b" => Ok(SyntheticModel {
            hidden: 4096,
            heads: 32,
            kv_heads: 8,
            head_dim: 128,
            feed_forward: 12_288,
            vocab: 151_936,
            context: 40_960,
            tied: false,
            ..plain
        }),
        // A layer of Qwen3-30B-A3B with a small vocabulary.
        "a3b" => Ok(SyntheticModel {
            hidden: 2048,
            heads: 32,
            kv_heads: 4,
            head_dim: 128,
            feed_forward: 768,
            vocab: 8192,
            context: 40_960,
            tied: false,
            ..plain
        }
        .qwen3moe(128, 8)),
        other => Err(format!("no shape is called {other}").into()),
    }
}

/// Writes a random model, as `SHAPE:FORMAT:LAYERS` says.
fn make(what: &str, path: &Path) -> Outcome<()> {
    let [name, kind, layers] = what.split(':').collect::<Vec<_>>()[..] else {
        return Err("--make wants SHAPE:FORMAT:LAYERS".into());
    };
    let kind = TensorType::ALL.into_iter().find(|it| it.name() == kind).ok_or("no such format")?;
    let mut out = BufWriter::new(File::create(path)?);
    SyntheticModel { kind, layers: layers.parse()?, ..shape(name)? }.write(&mut out)?;
    Ok(out.flush()?)
}

/// A job that answers with exactly so many tokens; its prompt differs from other seeds'.
fn job(seed: u32, prompt: u32, solution: u32, vocab: u32) -> GenerationJob {
    let sampling =
        SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: u64::from(seed) };
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
        priority: JobPriority::Interactive,
    }
}

fn finish(mut tokens: TokenStream) -> Outcome<()> {
    while let Some(event) = tokens.blocking_next() {
        if let GenerationEvent::Failed(error) = event {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Seconds by the clock, and of the process.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    cpu: f64,
}

fn cost_of(work: impl FnOnce() -> Outcome<()>) -> Outcome<Cost> {
    let (begin, before) = (Instant::now(), cpu_seconds());
    work()?;
    Ok(Cost { seconds: begin.elapsed().as_secs_f64(), cpu: cpu_seconds() - before })
}

/// What so many equal jobs at once cost.
fn together(engine: &Engine, sequences: u32, prompt: u32, solution: u32) -> Outcome<Cost> {
    sampled_together(engine, sequences, |seed| job(seed, prompt, solution, engine.vocab()))
}

fn sampled_together(engine: &Engine, sequences: u32, job: impl Fn(u32) -> GenerationJob) -> Outcome<Cost> {
    cost_of(|| {
        let jobs = (0..sequences).map(|seed| engine.generate(job(seed)));
        jobs.collect::<Result<Vec<_>, _>>()?.into_iter().try_for_each(finish)
    })
}

/// Processor time of the process so far: a clock of hundredths.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Bytes of memory that the process has now.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

fn print_cost(what: &str, size: u32, tokens: u32, cost: Cost) {
    let Cost { seconds, cpu } = cost;
    println!(
        r#"{{"measure": "{what}", "size": {size}, "tokens": {tokens}, "seconds": {seconds:.3}, "cpu_seconds": {cpu:.3}}}"#
    );
}

fn decode(engine: &Engine, device: &DeviceUse, plan: &Plan, sequences: u32) -> Outcome<()> {
    let decoded = plan.decoded.unwrap_or(DECODED);
    let jobs = |solution: u32| {
        sampled_together(engine, sequences, |seed| {
            let mut job = job(seed, 4, solution, engine.vocab());
            if plan.sampled {
                (job.sampling.temperature, job.sampling.top_k, job.sampling.top_p) = (0.6, 20, 0.95);
            }
            job
        })
    };
    // Without the first step, which is the prompt's.
    let first = jobs(1)?;
    let before = device.counts();
    let whole = jobs(decoded + 1)?;
    let now = device.counts();
    let cost = Cost { seconds: whole.seconds - first.seconds, cpu: whole.cpu - first.cpu };
    print_cost("decode", sequences, sequences * decoded, cost);
    let [submissions, dispatches, ahead] =
        [0, 1, 2].map(|n| (now[n] - before[n]) as f64 / f64::from(decoded + 1));
    println!(
        r#"{{"measure": "device", "size": {sequences}, "submissions": {submissions:.1}, "dispatches": {dispatches:.1}, "ahead": {ahead:.2}}}"#
    );
    Ok(())
}

/// How long the kernels of steps of one row, of 8 and of 512 take that end at these positions.
fn kernels(gguf: &Gguf, plan: &Plan) -> Outcome<()> {
    let context = plan.kernels.iter().max().map_or(16, |most| most + 16);
    let probe = StepProbe::open(gguf, context, plan.kv_format, plan.grain)?;
    for &position in &plan.kernels {
        let mut sizes = [1, 8, 512].map(|rows| rows.min(position + 1)).to_vec();
        sizes.dedup();
        for rows in sizes {
            // The first time a driver compiles.
            probe.kernels(position, rows)?;
            for (name, count, seconds) in probe.kernels(position, rows)? {
                println!(
                    r#"{{"measure": "kernel", "name": "{name}", "position": {position}, "rows": {rows}, "count": {count}, "microseconds": {:.1}}}"#,
                    seconds * 1e6
                );
            }
        }
    }
    Ok(())
}

/// Runs one step again and again.
fn steps(gguf: &Gguf, plan: &Plan) -> Outcome<()> {
    let context = plan.step.iter().max().map_or(16, |most| most + 16);
    let probe = StepProbe::open(gguf, context, plan.kv_format, plan.grain)?;
    probe.step(context - 1)?;
    for &position in &plan.step {
        let mut count = 0;
        let begin = Instant::now();
        let cost = cost_of(|| {
            while begin.elapsed() < STEPS_MIN || count < 3 {
                probe.step(position)?;
                count += 1;
            }
            Ok(())
        })?;
        print_cost("step", position, count, cost);
    }
    Ok(())
}

/// The waits between the tokens of four texts, in seconds: first of the four alone, then while a prompt of 512 tokens is read
/// beside them. Each but one in twenty is at most so long.
fn gaps(engine: &Engine) -> Outcome<[f64; 2]> {
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
    while let Some(GenerationEvent::PromptRead { .. }) = long.blocking_next() {}
    let end = Instant::now();
    let beside: Vec<_> = times.try_iter().filter(|(at, _)| (begin..=end).contains(at)).collect();
    drop(times);
    readers.into_iter().for_each(|reader| drop(reader.join()));
    println!(
        r#"{{"measure": "first token beside", "size": 512, "seconds": {:.3}}}"#,
        (end - begin).as_secs_f64()
    );
    Ok([alone, beside].map(|gaps| {
        let mut gaps: Vec<_> = gaps.into_iter().map(|(_, gap)| gap.as_secs_f64()).collect();
        gaps.sort_by(f64::total_cmp);
        gaps.get(gaps.len() * 19 / 20).copied().unwrap_or(f64::NAN)
    }))
}

fn print_memory(when: &str, accounted: u64) {
    println!(
        r#"{{"measure": "memory", "when": "{when}", "resident": {}, "weights_and_cache": {accounted}}}"#,
        resident()
    );
}

/// All that needs a running engine.
fn running(gguf: Gguf, plan: &Plan) -> Outcome<()> {
    let facts = describe(&gguf)?;
    let settings = Settings {
        sequences: 32,
        kv_tokens: 4096,
        kv_format: plan.kv_format,
        allow_cpu: true,
        prefill_chunk: plan.prefill_chunk,
        // Every prompt is read anew.
        prefix_reuse: false,
        ..Settings::default()
    };
    let token = match plan.kv_format {
        KvFormat::F16 => facts.kv_token_bytes,
        KvFormat::F32 => facts.kv_token_bytes * 2,
        KvFormat::Q8_0 => facts.kv_token_bytes_q8_0,
    };
    let accounted = facts.weight_bytes + token * u64::from(settings.kv_tokens);
    print_memory("before", 0);
    let (engine, device) = probe::start(&gguf, &settings, plan.grain)?;
    // As a gateway does it: the file is not needed any more.
    drop(gguf);
    print_memory("loaded", accounted);
    together(&engine, 1, 20, 2)?;
    print_memory("first request", accounted);
    plan.decode.iter().try_for_each(|sequences| decode(&engine, &device, plan, *sequences))?;
    for &length in plan.prefill.iter().filter(|length| **length < engine.context()) {
        print_cost("prefill", length, length, together(&engine, 1, length, 1)?);
    }
    if plan.questions {
        for sequences in [1, 8, 32] {
            print_cost("questions", sequences, sequences * 80, together(&engine, sequences, 20, 60)?);
        }
    }
    if plan.beside {
        let [alone, beside] = gaps(&engine)?;
        println!(r#"{{"measure": "gap", "alone": {alone:.4}, "beside": {beside:.4}}}"#);
    }
    print_memory("last", accounted);
    engine.stop();
    Ok(())
}

fn main() -> Outcome<()> {
    let plan = Plan::read(std::env::args().skip(1))?;
    if let (Some(what), Some(path)) = (&plan.make, &plan.file) {
        return make(what, path);
    }
    let gguf = plan.open()?;
    if !plan.kernels.is_empty() {
        kernels(&gguf, &plan)?;
    }
    if !plan.step.is_empty() {
        println!(r#"{{"measure": "bandwidth", "gb_per_second": {:.2}}}"#, probe::bandwidth()? / 1e9);
        steps(&gguf, &plan)?;
    }
    if !plan.decode.is_empty() || !plan.prefill.is_empty() || plan.beside || plan.questions {
        running(gguf, &plan)?;
    }
    Ok(())
}
