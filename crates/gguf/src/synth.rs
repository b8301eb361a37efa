//! Writes Qwen3 files with random weights, for tests, benchmarks and the parity suite.

use std::io::{self, Write};

use half::f16;

use super::{Q8_BLOCK, TensorType};

/// The shape of a random model.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names are those of the architecture")]
pub struct SyntheticModel {
    pub hidden: u32,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    pub feed_forward: u32,
    pub vocab: u32,
    pub context: u32,
    pub kind: TensorType,
    pub tied: bool,
    pub seed: u64,
}

impl Default for SyntheticModel {
    fn default() -> Self {
        Self {
            hidden: 32,
            layers: 2,
            heads: 4,
            kv_heads: 2,
            head_dim: 16,
            feed_forward: 64,
            vocab: 64,
            context: 128,
            kind: TensorType::F32,
            tied: true,
            seed: 1,
        }
    }
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

/// Encodes numbers, a whole number of blocks.
pub fn encode(kind: TensorType, numbers: &[f32]) -> Vec<u8> {
    match kind {
        TensorType::F32 => numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        TensorType::F16 => numbers.iter().flat_map(|n| f16::from_f32(*n).to_le_bytes()).collect(),
        TensorType::Q8_0 => numbers.chunks(Q8_BLOCK).flat_map(quantise).collect(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a quotient by the largest is within a signed byte")]
fn quantise(block: &[f32]) -> Vec<u8> {
    let largest = block.iter().fold(0f32, |most, n| most.max(n.abs()));
    let scale = f16::from_f32(largest / 127.0);
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let bytes = block.iter().map(|n| ((n * inverse).round() as i8).to_le_bytes()[0]);
    scale.to_le_bytes().into_iter().chain(bytes).collect()
}

struct PlannedTensor {
    name: String,
    columns: u32,
    rows: u32,
    /// One row of numbers near one, stored as F32: a norm's weights.
    norm: bool,
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
            head.extend_from_slice(&if tensor.norm { 1u32 } else { 2 }.to_le_bytes());
            head.extend_from_slice(&u64::from(tensor.columns).to_le_bytes());
            if !tensor.norm {
                head.extend_from_slice(&u64::from(tensor.rows).to_le_bytes());
            }
            let kind = if tensor.norm { TensorType::F32 } else { self.kind };
            let number = match kind {
                TensorType::F32 => 0u32,
                TensorType::F16 => 1,
                TensorType::Q8_0 => 8,
            };
            head.extend_from_slice(&number.to_le_bytes());
            head.extend_from_slice(&offset.to_le_bytes());
            let row = kind.row_bytes(tensor.columns as usize).unwrap_or(0) as u64;
            offset = (offset + row * u64::from(tensor.rows)).next_multiple_of(32);
        }
        head.resize(head.len().next_multiple_of(32), 0);
        out.write_all(&head)?;
        tensors.iter().enumerate().try_for_each(|(index, tensor)| self.data(out, index as u64, tensor))
    }

    fn data(&self, out: &mut impl Write, index: u64, tensor: &PlannedTensor) -> io::Result<()> {
        let mut state = self.seed.wrapping_mul(0x1_0000_01b3) ^ (index << 32);
        let kind = if tensor.norm { TensorType::F32 } else { self.kind };
        // Keeps activations near one, so that the softmax neither saturates nor flattens and hides mistakes.
        let spread = if tensor.norm { 0.2 } else { (3.0 / tensor.columns as f32).sqrt() };
        let centre = if tensor.norm { 1.0 } else { 0.0 };
        let mut written = 0usize;
        let mut row = vec![0f32; tensor.columns as usize];
        for _ in 0..tensor.rows {
            row.fill_with(|| centre + spread * noise(&mut state));
            let bytes = encode(kind, &row);
            out.write_all(&bytes)?;
            written += bytes.len();
        }
        out.write_all(&vec![0; written.next_multiple_of(32) - written])
    }

    fn tensors(&self) -> Vec<PlannedTensor> {
        let mut all = Vec::new();
        let mut add =
            |name: String, columns, rows, norm| all.push(PlannedTensor { name, columns, rows, norm });
        let (queries, values) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        add("token_embd.weight".into(), self.hidden, self.vocab, false);
        for layer in 0..self.layers {
            let mut weight = |name: &str, columns, rows, norm| {
                add(format!("blk.{layer}.{name}.weight"), columns, rows, norm);
            };
            weight("attn_norm", self.hidden, 1, true);
            weight("attn_q", self.hidden, queries, false);
            weight("attn_k", self.hidden, values, false);
            weight("attn_v", self.hidden, values, false);
            weight("attn_q_norm", self.head_dim, 1, true);
            weight("attn_k_norm", self.head_dim, 1, true);
            weight("attn_output", queries, self.hidden, false);
            weight("ffn_norm", self.hidden, 1, true);
            weight("ffn_gate", self.hidden, self.feed_forward, false);
            weight("ffn_up", self.hidden, self.feed_forward, false);
            weight("ffn_down", self.feed_forward, self.hidden, false);
        }
        add("output_norm.weight".into(), self.hidden, 1, true);
        if !self.tied {
            add("output.weight".into(), self.hidden, self.vocab, false);
        }
        all
    }

    fn metadata(&self, out: &mut Vec<u8>) {
        let numbers = [
            ("block_count", self.layers),
            ("embedding_length", self.hidden),
            ("feed_forward_length", self.feed_forward),
            ("context_length", self.context),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_dim),
            ("attention.value_length", self.head_dim),
        ];
        let count = numbers.len() as u64 + 7;
        out.extend_from_slice(&count.to_le_bytes());
        text(out, "general.architecture");
        out.extend_from_slice(&8u32.to_le_bytes());
        text(out, "qwen3");
        // candle reads this as the type of its activations; without it, it computes RoPE in F16.
        scalar(out, "general.dtype", 4, &0u32.to_le_bytes());
        for (name, value) in numbers {
            scalar(out, &format!("qwen3.{name}"), 4, &value.to_le_bytes());
        }
        scalar(out, "qwen3.attention.layer_norm_rms_epsilon", 6, &1e-6f32.to_le_bytes());
        scalar(out, "qwen3.rope.freq_base", 6, &10_000f32.to_le_bytes());
        scalar(out, "tokenizer.ggml.add_bos_token", 7, &[0]);
        list(out, "tokenizer.ggml.tokens", 8, self.vocab);
        for id in 0..self.vocab {
            text(out, &format!("t{id}"));
        }
        list(out, "tokenizer.ggml.token_type", 5, self.vocab);
        for _ in 0..self.vocab {
            out.extend_from_slice(&1i32.to_le_bytes());
        }
    }
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
