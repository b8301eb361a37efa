//! The engine's logits against those of candle's models of each family, on the same files and the same tokens.
//!
//! Both prefill a prompt in one piece and are then fed the same tokens one by one, whatever they would have
//! chosen. The engine reads the weights as they are stored; candle reads the same weights unpacked to F32,
//! because on quantised ones it would quantise the activations too, and err by far more than the engine.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::quantized::gguf_file::{Content, Value, write};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device, Tensor};
use candle_nn::{Activation, VarBuilder};
use candle_transformers::models::{quantized_llama, quantized_qwen2, quantized_qwen3, qwen3_moe};
use stint_engine::KvFormat;
use stint_engine::probe::LogitsProbe;
use stint_gguf::TensorType;
use stint_gguf::synth::SyntheticModel;

/// The same model with every weight unpacked to F32.
fn unpacked(path: &Path) -> PathBuf {
    let mut file = BufReader::new(File::open(path).unwrap());
    let content = Content::read(&mut file).unwrap();
    let tensors: Vec<_> = content
        .tensor_infos
        .keys()
        .map(|name| {
            let packed = content.tensor(&mut file, name, &Device::Cpu).unwrap();
            let plain = packed.dequantize(&Device::Cpu).unwrap();
            (name.as_str(), QTensor::quantize(&plain, GgmlDType::F32).unwrap())
        })
        .collect();
    let metadata: Vec<_> = content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let twin = temporary("unpacked");
    write(&mut BufWriter::new(File::create(&twin).unwrap()), &metadata, &tensors).unwrap();
    twin
}

/// Candle's logits after the prompt and after each further token.
fn oracle(path: &Path, prompt: &[u32], forced: &[u32]) -> Vec<Vec<f32>> {
    let mut file = BufReader::new(File::open(path).unwrap());
    let mut content = Content::read(&mut file).unwrap();
    // Without it candle computes RoPE in F16.
    content.metadata.insert("general.dtype".into(), Value::U32(0));
    let mut forward = family(content, &mut file);
    let mut feed = |tokens: &[u32], position| {
        let input = Tensor::new(tokens, &Device::Cpu).unwrap().unsqueeze(0).unwrap();
        let logits = forward(&input, position).unwrap();
        logits.flatten_all().unwrap().to_vec1::<f32>().unwrap()
    };
    let mut all = vec![feed(prompt, 0)];
    for (step, token) in forced.iter().enumerate() {
        all.push(feed(&[*token], prompt.len() + step));
    }
    all
}

/// A model's forward pass.
type Forward = Box<dyn FnMut(&Tensor, usize) -> candle_core::Result<Tensor>>;

fn family(content: Content, file: &mut BufReader<File>) -> Forward {
    let device = &Device::Cpu;
    match content.metadata["general.architecture"].to_string().unwrap().as_str() {
        "qwen3moe" => mixture(&content, file),
        "qwen2" => {
            let mut model = quantized_qwen2::ModelWeights::from_gguf(content, file, device).unwrap();
            Box::new(move |input, position| model.forward(input, position))
        }
        "llama" => {
            let mut model = quantized_llama::ModelWeights::from_gguf(content, file, device).unwrap();
            Box::new(move |input, position| model.forward(input, position))
        }
        _ => {
            let mut model = quantized_qwen3::ModelWeights::from_gguf(content, file, device).unwrap();
            Box::new(move |input, position| model.forward(input, position))
        }
    }
}

/// Candle has no mixture of experts that reads a file on a processor: the plain one gets the weights under the names that it knows.
fn mixture(content: &Content, file: &mut BufReader<File>) -> Forward {
    let number = |name: &str| content.metadata[&format!("qwen3moe.{name}")].to_u32().unwrap() as usize;
    let normalised = content.metadata.get("qwen3moe.expert_weights_norm");
    let vocab_size = content.tensor_infos["token_embd.weight"].shape.dims()[0];
    let config = qwen3_moe::Config {
        vocab_size,
        hidden_size: number("embedding_length"),
        intermediate_size: number("feed_forward_length"),
        num_hidden_layers: number("block_count"),
        num_attention_heads: number("attention.head_count"),
        head_dim: number("attention.key_length"),
        attention_bias: false,
        num_key_value_heads: number("attention.head_count_kv"),
        max_position_embeddings: number("context_length"),
        sliding_window: None,
        max_window_layers: 0,
        tie_word_embeddings: !content.tensor_infos.contains_key("output.weight"),
        rope_theta: 10_000.0,
        rms_norm_eps: 1e-6,
        use_sliding_window: false,
        hidden_act: Activation::Silu,
        decoder_sparse_step: 1,
        moe_intermediate_size: number("expert_feed_forward_length"),
        num_experts_per_tok: number("expert_used_count"),
        num_experts: number("expert_count"),
        norm_topk_prob: normalised.is_none_or(|normalised| normalised.to_bool().unwrap()),
    };
    let mut weights = HashMap::new();
    for name in content.tensor_infos.keys() {
        let packed = content.tensor(file, name, &Device::Cpu).unwrap();
        let tensor = packed.dequantize(&Device::Cpu).unwrap();
        match name.split_once("_exps") {
            None => drop(weights.insert(candle_name(name), tensor)),
            Some((layer, _)) => {
                let (layer, part) = layer.rsplit_once(".ffn_").unwrap();
                let layer = candle_name(layer);
                let expert = |expert| format!("{layer}.mlp.experts.{expert}.{part}_proj.weight");
                let all = (0..config.num_experts).map(|n| (expert(n), tensor.get(n).unwrap()));
                weights.extend(all);
            }
        }
    }
    let weights = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
    let mut model = qwen3_moe::ModelForCausalLM::new(&config, weights).unwrap();
    Box::new(move |input, position| model.forward(input, position))
}

/// What candle calls a tensor of a file.
fn candle_name(name: &str) -> String {
    let names = [
        ("blk.", "model.layers."),
        ("token_embd", "model.embed_tokens"),
        ("output_norm", "model.norm"),
        ("attn_output", "self_attn.o_proj"),
        ("attn_q_norm", "self_attn.q_norm"),
        ("attn_k_norm", "self_attn.k_norm"),
        ("attn_norm", "input_layernorm"),
        ("attn_q.", "self_attn.q_proj."),
        ("attn_k.", "self_attn.k_proj."),
        ("attn_v.", "self_attn.v_proj."),
        ("ffn_norm", "post_attention_layernorm"),
        ("ffn_gate_inp", "mlp.gate"),
    ];
    let renamed = names.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to));
    if renamed == "output.weight" { "lm_head.weight".into() } else { renamed }
}

fn ours(path: &Path, format: KvFormat, prompt: &[u32], forced: &[u32]) -> Vec<Vec<f32>> {
    let mut probe = LogitsProbe::open(path, 64, format).unwrap();
    let mut all = vec![probe.feed(prompt).unwrap()];
    all.extend(forced.iter().map(|token| probe.feed(&[*token]).unwrap()));
    all
}

fn likeliest(logits: &[f32]) -> usize {
    (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap()
}

/// Every logit within `tolerance` of candle's, as a share of their spread, where the cache keeps what was computed; with half
/// of the bits it is further off, as candle would be. Prints what was measured.
fn check(name: &str, path: &Path, vocab: u32, tolerance: f32) {
    check_with(KvFormat::F32, name, path, vocab, tolerance);
    check_with(KvFormat::F16, name, path, vocab, ROUNDED);
    check_with(KvFormat::Q8_0, name, path, vocab, IN_BYTES);
}

/// What an f16 cache may do to a logit, as a share of the spread.
const ROUNDED: f32 = 1e-2;

/// What a cache of bytes may do to it.
const IN_BYTES: f32 = 1e-1;

fn check_with(format: KvFormat, name: &str, path: &Path, vocab: u32, tolerance: f32) {
    let token = |n: u32| (n * 7919 + 3) % vocab;
    let prompt: Vec<_> = (0..21).map(token).collect();
    let forced: Vec<_> = (21..33).map(token).collect();
    let twin = unpacked(path);
    let (ours, theirs) = (ours(path, format, &prompt, &forced), oracle(&twin, &prompt, &forced));
    std::fs::remove_file(twin).unwrap();
    let mut worst = 0f32;
    let mut agree = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.len(), theirs.len());
        let mean = theirs.iter().sum::<f32>() / theirs.len() as f32;
        let spread = (theirs.iter().map(|l| (l - mean).powi(2)).sum::<f32>() / theirs.len() as f32).sqrt();
        let off = ours.iter().zip(theirs).fold(0f32, |most, (a, b)| most.max((a - b).abs()));
        worst = worst.max(off / spread);
        agree += usize::from(likeliest(ours) == likeliest(theirs));
    }
    let _ = writeln!(
        std::io::stderr(),
        "{name}, {format:?} cache: logits differ by {worst:.1e} of their spread at most; likeliest token agrees {agree} of {}",
        theirs.len()
    );
    assert!(worst <= tolerance, "{name}, {format:?} cache: {worst:e} of the spread");
}

/// A path that no other test uses.
fn temporary(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("stint-parity-{}-{count}-{name}.gguf", std::process::id()))
}

/// Writes a random model to a file of this test's own.
fn file(name: &str, synth: &SyntheticModel) -> PathBuf {
    let path = temporary(name);
    let mut out = BufWriter::new(File::create(&path).unwrap());
    synth.write(&mut out).unwrap();
    out.flush().unwrap();
    path
}

fn check_random(name: &str, synth: &SyntheticModel, tolerance: f32) {
    let path = file(name, synth);
    check(name, &path, synth.vocab, tolerance);
    std::fs::remove_file(path).unwrap();
}

fn small(kind: TensorType) -> SyntheticModel {
    SyntheticModel {
        hidden: 96,
        layers: 3,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        feed_forward: 160,
        vocab: 515,
        kind,
        ..SyntheticModel::default()
    }
}

#[test]
fn random_models_of_every_format_agree() {
    // Candle reads neither IQ4_NL nor MXFP4.
    let read = |kind: &TensorType| !matches!(kind, TensorType::Iq4Nl | TensorType::Mxfp4);
    for kind in TensorType::ALL.into_iter().filter(read) {
        let synth = if kind.block_numbers() == 256 { wide(kind) } else { small(kind) };
        check_random(kind.name(), &synth, 5e-5);
    }
}

/// Rows of whole blocks of 256.
fn wide(kind: TensorType) -> SyntheticModel {
    SyntheticModel { hidden: 256, heads: 4, kv_heads: 2, head_dim: 64, feed_forward: 512, ..small(kind) }
}

#[test]
fn every_family_agrees() {
    for (kind, tied) in [(TensorType::F32, true), (TensorType::Q4_1, false), (TensorType::Q4K, true)] {
        let plain = SyntheticModel { tied, ..wide(kind) };
        check_random("qwen2", &plain.clone().qwen2(), 5e-5);
        check_random("llama", &plain.llama(), 5e-5);
    }
}

/// By a cache that keeps all bits: rounded, a row may go through another expert where two are about as good.
fn check_mixture(name: &str, synth: &SyntheticModel) {
    let path = file(name, synth);
    check_with(KvFormat::F32, name, &path, synth.vocab, 5e-5);
    std::fs::remove_file(path).unwrap();
}

/// Prompts of 21 tokens make teams of rows that share an expert, or are too short for that.
#[test]
fn mixtures_of_experts_agree() {
    for kind in [TensorType::F32, TensorType::F16, TensorType::Q8_0] {
        check_mixture(kind.name(), &small(kind).qwen3moe(8, 2));
    }
    for kind in [TensorType::Q4K, TensorType::Q6K] {
        check_mixture(kind.name(), &wide(kind).qwen3moe(6, 3));
    }
    let plain = small(TensorType::F32);
    for (experts, used) in [(1, 1), (4, 4), (33, 1), (60, 4)] {
        let tied = experts > 4;
        check_mixture(
            &format!("{used} of {experts}"),
            &SyntheticModel { tied, ..plain.clone().qwen3moe(experts, used) },
        );
    }
    let flags = vec![("qwen3moe.expert_weights_norm", false)];
    check_mixture("shares of all", &SyntheticModel { flags, ..plain.qwen3moe(8, 3) });
}

#[test]
fn heads_that_share_nothing_pairs_and_fours_agree() {
    for kv_heads in [1, 2, 4] {
        check_random(
            &format!("kv{kv_heads}"),
            &SyntheticModel { kv_heads, tied: false, ..small(TensorType::F32) },
            5e-5,
        );
    }
}

/// 151,936 rows of 256 are 155 MB of F32: more than lavapipe binds at once, so the table lies in parts.
#[test]
fn a_vocabulary_larger_than_one_binding_agrees() {
    let large = SyntheticModel {
        hidden: 256,
        layers: 2,
        heads: 8,
        kv_heads: 2,
        head_dim: 64,
        feed_forward: 512,
        vocab: 151_936,
        ..SyntheticModel::default()
    };
    check_random("large vocabulary", &large, 5e-5);
}

#[test]
fn the_embedded_model_agrees() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/reasoner.gguf");
    if !path.exists() {
        let _ = writeln!(std::io::stderr(), "{} is not there yet", path.display());
        return;
    }
    let vocab = stint_gguf::Gguf::open(&path).unwrap().texts("tokenizer.ggml.tokens").unwrap().len();
    check("embedded model", &path, u32::try_from(vocab).unwrap(), 5e-5);
}
