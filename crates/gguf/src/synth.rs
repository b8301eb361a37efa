//! Writes files with random weights, for tests, benchmarks and the parity suite.

mod decode;
mod encode;

use std::io::{self, Write};

use super::TensorType;

pub use decode::decode;
pub use encode::encode;

/// The shape of a random model.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names are those of the architecture")]
pub struct SyntheticModel {
    pub architecture: &'static str,
    pub hidden: u32,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    pub feed_forward: u32,
    /// The experts of a layer, of `feed_forward` each, and how many of them a token goes through; none in a dense model.
    pub experts: u32,
    pub experts_used: u32,
    pub vocab: u32,
    pub context: u32,
    pub kind: TensorType,
    pub tied: bool,
    /// Whether queries and keys are normalised, and whether they and the values have a bias.
    pub qk_norm: bool,
    pub qkv_bias: bool,
    /// More metadata, by their whole keys: numbers, whole and with a fraction, truths, and texts.
    pub integers: Vec<(&'static str, u32)>,
    pub floats: Vec<(&'static str, f32)>,
    pub flags: Vec<(&'static str, bool)>,
    pub texts: Vec<(&'static str, &'static str)>,
    /// The pairs of tokens that are joined, as llama.cpp wants some.
    pub merges: Vec<&'static str>,
    /// Tokens that have a name of their own, by their ids, and the number of their kind.
    pub tokens: Vec<(u32, &'static str, i32)>,
    /// Divisors of the rotations' frequencies, one a pair, as Llama 3 has them; none where it is empty.
    pub rope_factors: Vec<f32>,
    pub seed: u64,
}

impl Default for SyntheticModel {
    fn default() -> Self {
        Self {
            architecture: "qwen3",
            hidden: 32,
            layers: 2,
            heads: 4,
            kv_heads: 2,
            head_dim: 16,
            feed_forward: 64,
            experts: 0,
            experts_used: 0,
            vocab: 64,
            context: 128,
            kind: TensorType::F32,
            tied: true,
            qk_norm: true,
            qkv_bias: false,
            integers: Vec::new(),
            floats: Vec::new(),
            flags: Vec::new(),
            texts: Vec::new(),
            merges: Vec::new(),
            tokens: Vec::new(),
            rope_factors: Vec::new(),
            seed: 1,
        }
    }
}

impl SyntheticModel {
    /// The same shape as a Qwen2 model has it: with biases, without norms of queries and keys.
    #[must_use]
    pub fn qwen2(self) -> Self {
        Self { architecture: "qwen2", qk_norm: false, qkv_bias: true, ..self }
    }

    /// The same shape as a Llama or Mistral model has it.
    #[must_use]
    pub fn llama(self) -> Self {
        Self { architecture: "llama", qk_norm: false, qkv_bias: false, ..self }
    }

    /// The same shape with so many experts in each layer, of which a token goes through `used`.
    #[must_use]
    pub fn qwen3moe(self, experts: u32, used: u32) -> Self {
        Self { architecture: "qwen3moe", experts, experts_used: used, ..self }
    }
}

/// Tensors that are made at once.
fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A number from a counter: `SplitMix64`.
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number between -1 and 1.
pub fn noise(state: &mut u64) -> f32 {
    let bits = (mix(state) >> 40) as u32;
    bits as f32 / 8_388_608.0 - 1.0
}

struct PlannedTensor {
    name: String,
    columns: u32,
    rows: u32,
    /// How many such matrices lie one behind the other.
    stacked: u32,
    role: TensorRole,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TensorRole {
    /// Of the model's own kind; all others are F32.
    Matrix,
    /// As many of them as there are experts.
    Experts,
    /// What chooses among the experts.
    Router,
    /// All from here on are one row.
    /// Numbers near one: a norm's weights.
    Norm,
    /// Numbers near zero.
    Bias,
    /// As they are stated.
    RopeFactors,
}

impl PlannedTensor {
    fn dimensions(&self) -> Vec<u32> {
        match self.role {
            TensorRole::Experts => vec![self.columns, self.rows, self.stacked],
            TensorRole::Matrix | TensorRole::Router => vec![self.columns, self.rows],
            TensorRole::Norm | TensorRole::Bias | TensorRole::RopeFactors => vec![self.columns],
        }
    }

    fn rows_stacked(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.stacked)
    }
}

impl SyntheticModel {
    /// The file in memory.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to a vector cannot fail.
        let _ = self.write(&mut out);
        out
    }

    /// Writes the file.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let tensors = self.tensors();
        let mut head = Vec::new();
        head.extend_from_slice(b"GGUF");
        head.extend_from_slice(&3u32.to_le_bytes());
        head.extend_from_slice(&(tensors.len() as u64).to_le_bytes());
        self.metadata(&mut head);
        let mut offset = 0u64;
        for tensor in &tensors {
            text(&mut head, &tensor.name);
            let dimensions = tensor.dimensions();
            head.extend_from_slice(&u32::try_from(dimensions.len()).unwrap_or(0).to_le_bytes());
            for length in dimensions {
                head.extend_from_slice(&u64::from(length).to_le_bytes());
            }
            let kind = self.kind_of(tensor.role);
            head.extend_from_slice(&kind.ggml().to_le_bytes());
            head.extend_from_slice(&offset.to_le_bytes());
            let row = kind.row_bytes(tensor.columns as usize).unwrap_or(0) as u64;
            offset = (offset + row * tensor.rows_stacked()).next_multiple_of(32);
        }
        head.resize(head.len().next_multiple_of(32), 0);
        out.write_all(&head)?;
        let tensors: Vec<_> = tensors.iter().enumerate().collect();
        tensors.chunks(parallelism()).try_for_each(|some| self.data_of(out, some))
    }

    /// Each made by a thread of its own: a large model has billions of numbers.
    fn data_of(&self, out: &mut impl Write, tensors: &[(usize, &PlannedTensor)]) -> io::Result<()> {
        let made = |(index, tensor): (usize, &PlannedTensor)| {
            let mut bytes = Vec::new();
            self.data(&mut bytes, index as u64, tensor).map(|()| bytes)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = tensors.iter().map(|one| scope.spawn(|| made(*one))).collect();
            threads.into_iter().try_for_each(|thread| {
                let lost = |_| io::Error::other("a thread that made a tensor is gone");
                out.write_all(&thread.join().map_err(lost)??)
            })
        })
    }

    fn kind_of(&self, role: TensorRole) -> TensorType {
        if matches!(role, TensorRole::Matrix | TensorRole::Experts) { self.kind } else { TensorType::F32 }
    }

    fn data(&self, out: &mut impl Write, index: u64, tensor: &PlannedTensor) -> io::Result<()> {
        let mut state = self.seed.wrapping_mul(0x1_0000_01b3) ^ (index << 32);
        let kind = self.kind_of(tensor.role);
        // Keeps activations near one, so that the softmax neither saturates nor flattens and hides mistakes.
        let (centre, spread) = match tensor.role {
            TensorRole::Matrix | TensorRole::Experts | TensorRole::Router => {
                (0.0, (3.0 / tensor.columns as f32).sqrt())
            }
            TensorRole::Norm => (1.0, 0.2),
            TensorRole::Bias => (0.0, 0.5),
            TensorRole::RopeFactors => return out.write_all(&padded(&encode(kind, &self.rope_factors))),
        };
        let mut written = 0usize;
        let mut row = vec![0f32; tensor.columns as usize];
        for _ in 0..tensor.rows_stacked() {
            row.fill_with(|| centre + spread * noise(&mut state));
            let bytes = encode(kind, &row);
            out.write_all(&bytes)?;
            written += bytes.len();
        }
        out.write_all(&vec![0; written.next_multiple_of(32) - written])
    }

    fn tensors(&self) -> Vec<PlannedTensor> {
        let mut all = Vec::new();
        let mut add = |name: String, columns, rows, role| {
            let stacked = if role == Experts { self.experts } else { 1 };
            all.push(PlannedTensor { name, columns, rows, stacked, role });
        };
        let (queries, values) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        use TensorRole::{Bias, Experts, Matrix, Norm, RopeFactors, Router};
        add("token_embd.weight".into(), self.hidden, self.vocab, Matrix);
        if !self.rope_factors.is_empty() {
            add("rope_freqs.weight".into(), self.head_dim / 2, 1, RopeFactors);
        }
        for layer in 0..self.layers {
            let mut part = |name: &str, columns, rows, role| {
                let end = if role == Bias { "bias" } else { "weight" };
                add(format!("blk.{layer}.{name}.{end}"), columns, rows, role);
            };
            part("attn_norm", self.hidden, 1, Norm);
            for (name, rows) in [("attn_q", queries), ("attn_k", values), ("attn_v", values)] {
                part(name, self.hidden, rows, Matrix);
                if self.qkv_bias {
                    part(name, rows, 1, Bias);
                }
            }
            if self.qk_norm {
                part("attn_q_norm", self.head_dim, 1, Norm);
                part("attn_k_norm", self.head_dim, 1, Norm);
            }
            part("attn_output", queries, self.hidden, Matrix);
            part("ffn_norm", self.hidden, 1, Norm);
            if self.experts == 0 {
                part("ffn_gate", self.hidden, self.feed_forward, Matrix);
                part("ffn_up", self.hidden, self.feed_forward, Matrix);
                part("ffn_down", self.feed_forward, self.hidden, Matrix);
            } else {
                part("ffn_gate_inp", self.hidden, self.experts, Router);
                part("ffn_gate_exps", self.hidden, self.feed_forward, Experts);
                part("ffn_up_exps", self.hidden, self.feed_forward, Experts);
                part("ffn_down_exps", self.feed_forward, self.hidden, Experts);
            }
        }
        add("output_norm.weight".into(), self.hidden, 1, Norm);
        if !self.tied {
            add("output.weight".into(), self.hidden, self.vocab, Matrix);
        }
        all
    }

    fn metadata(&self, out: &mut Vec<u8>) {
        let mut numbers = vec![
            ("block_count", self.layers),
            ("embedding_length", self.hidden),
            ("feed_forward_length", self.feed_forward),
            ("context_length", self.context),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_dim),
            ("attention.value_length", self.head_dim),
        ];
        if self.experts > 0 {
            numbers.push(("expert_count", self.experts));
            numbers.push(("expert_used_count", self.experts_used));
            numbers.push(("expert_feed_forward_length", self.feed_forward));
        }
        let more = self.integers.len() + self.floats.len() + self.flags.len() + self.texts.len();
        let count = (numbers.len() + more) as u64 + 8 + u64::from(!self.merges.is_empty());
        out.extend_from_slice(&count.to_le_bytes());
        text(out, "general.architecture");
        out.extend_from_slice(&8u32.to_le_bytes());
        text(out, self.architecture);
        // candle reads this as the type of its activations; without it, it computes RoPE in F16.
        scalar(out, "general.dtype", 4, &0u32.to_le_bytes());
        let key = |name: &str| format!("{}.{name}", self.architecture);
        for (name, value) in numbers {
            scalar(out, &key(name), 4, &value.to_le_bytes());
        }
        scalar(out, &key("attention.layer_norm_rms_epsilon"), 6, &1e-6f32.to_le_bytes());
        scalar(out, &key("rope.freq_base"), 6, &10_000f32.to_le_bytes());
        scalar(out, &key("rope.dimension_count"), 4, &self.head_dim.to_le_bytes());
        for (key, value) in &self.integers {
            scalar(out, key, 4, &value.to_le_bytes());
        }
        for (key, value) in &self.flags {
            scalar(out, key, 7, &[u8::from(*value)]);
        }
        for (key, value) in &self.floats {
            scalar(out, key, 6, &value.to_le_bytes());
        }
        for (key, value) in &self.texts {
            text(out, key);
            out.extend_from_slice(&8u32.to_le_bytes());
            text(out, value);
        }
        scalar(out, "tokenizer.ggml.add_bos_token", 7, &[0]);
        if !self.merges.is_empty() {
            list(out, "tokenizer.ggml.merges", 8, u32::try_from(self.merges.len()).unwrap_or(u32::MAX));
            self.merges.iter().for_each(|merge| text(out, merge));
        }
        list(out, "tokenizer.ggml.tokens", 8, self.vocab);
        let named = |id: u32| self.tokens.iter().find(|(named, ..)| *named == id);
        for id in 0..self.vocab {
            text(out, &named(id).map_or_else(|| format!("t{id}"), |(_, name, _)| (*name).to_owned()));
        }
        list(out, "tokenizer.ggml.token_type", 5, self.vocab);
        for id in 0..self.vocab {
            out.extend_from_slice(&named(id).map_or(1, |(.., kind)| *kind).to_le_bytes());
        }
    }
}

/// With zeros behind it up to where the next tensor begins.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn scalar(out: &mut Vec<u8>, key: &str, kind: u32, value: &[u8]) {
    text(out, key);
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(value);
}

fn list(out: &mut Vec<u8>, key: &str, kind: u32, length: u32) {
    text(out, key);
    out.extend_from_slice(&9u32.to_le_bytes());
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&u64::from(length).to_le_bytes());
}
