//! The families of models: what sets each apart, as data. All of them are made of the same layers.

use stint_gguf::Gguf;

use super::error::EngineError;

/// How the numbers of a head are paired to be rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RopePairs {
    /// Number n with number n + half.
    Halves,
    /// Number 2n with number 2n + 1.
    Neighbours,
}

/// What sets a family apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Family {
    /// As files call it; their keys begin with it.
    pub(crate) architecture: &'static str,
    pub(crate) pairs: RopePairs,
    /// What its feed-forward networks are made of.
    network: &'static [&'static str],
    /// What its layers have beside that and [`LAYER`].
    more: &'static [&'static str],
    /// What they may have.
    optional: &'static [&'static str],
}

/// What a layer of every family is made of.
const LAYER: [&str; 6] = [
    "attn_norm.weight",
    "attn_q.weight",
    "attn_k.weight",
    "attn_v.weight",
    "attn_output.weight",
    "ffn_norm.weight",
];

const DENSE: [&str; 3] = ["ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"];

/// What chooses among experts, and the matrices of all experts, one behind the other. Shared experts are not among them.
const EXPERTS: [&str; 4] =
    ["ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"];

const QK_NORMS: [&str; 2] = ["attn_q_norm.weight", "attn_k_norm.weight"];
const QKV_BIASES: [&str; 3] = ["attn_q.bias", "attn_k.bias", "attn_v.bias"];

/// What stands outside the layers.
const OUTSIDE: [&str; 4] = ["token_embd.weight", "output_norm.weight", "output.weight", "rope_freqs.weight"];

const QWEN3: Family = Family {
    architecture: "qwen3",
    pairs: RopePairs::Halves,
    network: &DENSE,
    more: &QK_NORMS,
    optional: &[],
};

const FAMILIES: [Family; 4] = [
    QWEN3,
    Family { architecture: "qwen3moe", network: &EXPERTS, ..QWEN3 },
    Family { architecture: "qwen2", more: &QKV_BIASES, ..QWEN3 },
    // Mistral's files are of it too.
    Family {
        architecture: "llama",
        pairs: RopePairs::Neighbours,
        network: &DENSE,
        more: &[],
        optional: &QKV_BIASES,
    },
];

/// What other families multiply with or bend on their way, by its key, and the value that changes nothing. A zero says that there is
/// none.
const OTHER_WAYS: [(&str, f32); 7] = [
    ("attention.scale", 0.0),
    ("attention.clamp_kqv", 0.0),
    ("attn_logit_softcapping", 0.0),
    ("final_logit_softcapping", 0.0),
    ("logit_scale", 1.0),
    ("embedding_scale", 1.0),
    ("residual_scale", 1.0),
];

impl Family {
    /// The family of a file, whose tensors are those of the family and no others: ignoring one would give wrong answers that look right.
    pub(crate) fn of(gguf: &Gguf) -> Result<&'static Self, EngineError> {
        gguf.check_is_model()?;
        let architecture = gguf.text("general.architecture").unwrap_or("unknown");
        let family = FAMILIES.iter().find(|family| family.architecture == architecture).ok_or_else(|| {
            let known = FAMILIES.map(|family| family.architecture).join(", ");
            EngineError::Model(format!(
                "its architecture `{architecture}` is none of {known}: serve it by llama.cpp (`kind = \"llamacpp\"`)"
            ))
        })?;
        family.check_purpose(gguf)?;
        let mut strange: Vec<_> = gguf.tensor_names().filter(|name| !family.knows(name)).collect();
        strange.sort_unstable();
        if let Some(name) = strange.first() {
            return Err(EngineError::Model(format!(
                "it has a tensor `{name}`, as a plain {architecture} model has not: serve it by llama.cpp (`kind = \"llamacpp\"`)"
            )));
        }
        Ok(family)
    }

    /// Refuses a file whose tensors are those of the family and which is to be run otherwise all the same.
    fn check_purpose(&self, gguf: &Gguf) -> Result<(), EngineError> {
        let key = |name: &str| format!("{}.{name}", self.architecture);
        let is_causal = gguf.flag(&key("attention.causal")).unwrap_or(true);
        if gguf.integer(&key("pooling_type")).unwrap_or(0) != 0 || !is_causal {
            return Err(EngineError::Model(
                "it was made to embed or to rank texts and writes none: take the instruct model of its family".to_owned(),
            ));
        }
        let differs = |one: f32, other: f32| (one - other).abs() > f32::EPSILON;
        let changed = OTHER_WAYS.into_iter().find(|(name, neutral)| {
            gguf.float(&key(name)).is_some_and(|factor| differs(factor, 0.0) && differs(factor, *neutral))
        });
        changed.map_or(Ok(()), |(name, _)| {
            Err(EngineError::Model(format!(
                "it states `{}`, as a plain {} model does not: serve it by llama.cpp (`kind = \"llamacpp\"`)",
                key(name),
                self.architecture
            )))
        })
    }

    /// Whether queries and keys are normalised.
    pub(crate) fn has_qk_norm(&self) -> bool {
        self.more.contains(&QK_NORMS[0])
    }

    /// Whether its feed-forward networks are experts, of which each token goes through some.
    pub(crate) fn has_experts(&self) -> bool {
        self.network.contains(&EXPERTS[0])
    }

    /// Whether queries, keys and values of this file's layers have biases.
    pub(crate) fn has_qkv_bias(&self, gguf: &Gguf) -> bool {
        // One that only some layers have is missed in the others, and refused there.
        self.more.contains(&QKV_BIASES[0]) || gguf.tensor_names().any(is_qkv_bias)
    }

    fn knows(&self, tensor: &str) -> bool {
        let in_layer = tensor.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        in_layer.map_or_else(
            || OUTSIDE.contains(&tensor),
            |(_, part)| {
                [&LAYER, self.network, self.more, self.optional].iter().any(|parts| parts.contains(&part))
            },
        )
    }
}

/// Whether a tensor is of all experts of a layer.
pub(crate) fn is_of_experts(tensor: &str) -> bool {
    let in_layer = tensor.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    in_layer.is_some_and(|(_, part)| EXPERTS[1..].contains(&part))
}

fn is_qkv_bias(tensor: &str) -> bool {
    let in_layer = tensor.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    in_layer.is_some_and(|(_, part)| QKV_BIASES.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_gguf::synth::SyntheticModel;

    fn refused(synth: &SyntheticModel) -> String {
        let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
        Family::of(&gguf).unwrap_err().to_string()
    }

    #[test]
    fn what_no_family_is_made_of_is_refused_by_name() {
        let error = refused(&SyntheticModel { architecture: "phi3", ..SyntheticModel::default() });
        assert!(error.contains("`phi3`") && error.contains("qwen2, llama"), "{error}");
        let error = refused(&SyntheticModel { architecture: "llama", ..SyntheticModel::default() });
        assert!(error.contains("blk.0.attn_k_norm.weight") && error.contains("llamacpp"), "{error}");
    }

    /// Their tensors are those of a model that writes.
    #[test]
    fn what_embeds_or_ranks_texts_is_refused_and_does_not_answer() {
        for pooling in [1, 3, 4] {
            let integers = vec![("qwen3.pooling_type", pooling)];
            let error = refused(&SyntheticModel { integers, ..SyntheticModel::default() });
            assert!(error.contains("embed") && error.contains("instruct"), "{error}");
        }
        let flags = vec![("qwen3.attention.causal", false)];
        assert!(refused(&SyntheticModel { flags, ..SyntheticModel::default() }).contains("embed"));
        let plain = SyntheticModel { integers: vec![("qwen3.pooling_type", 0)], ..SyntheticModel::default() };
        Family::of(&Gguf::from_bytes(plain.bytes().into()).unwrap()).unwrap();
    }

    #[test]
    fn what_is_computed_otherwise_is_refused_by_its_key() {
        let with = |name, value| SyntheticModel { floats: vec![(name, value)], ..SyntheticModel::default() };
        let error = refused(&with("qwen3.attention.scale", 0.5));
        assert!(error.contains("`qwen3.attention.scale`") && error.contains("llamacpp"), "{error}");
        assert!(refused(&with("qwen3.logit_scale", 0.5)).contains("logit_scale"));
        for (name, value) in [("qwen3.logit_scale", 1.0), ("qwen3.attention.scale", 0.0)] {
            Family::of(&Gguf::from_bytes(with(name, value).bytes().into()).unwrap()).unwrap();
        }
    }

    #[test]
    fn an_adapter_is_called_one() {
        let texts = vec![("general.type", "adapter")];
        assert!(refused(&SyntheticModel { texts, ..SyntheticModel::default() }).contains("LoRA"));
    }

    #[test]
    fn experts_are_of_their_own_family_and_shared_ones_of_none() {
        let plain = SyntheticModel::default().qwen3moe(4, 2);
        let gguf = Gguf::from_bytes(plain.bytes().into()).unwrap();
        assert!(Family::of(&gguf).unwrap().has_experts());
        let error = refused(&SyntheticModel { architecture: "qwen3", ..plain.clone() });
        assert!(error.contains("blk.0.ffn_down_exps.weight") && error.contains("llamacpp"), "{error}");
        let error = refused(&SyntheticModel { architecture: "qwen2moe", ..plain.clone() });
        assert!(error.contains("`qwen2moe`") && error.contains("llamacpp"), "{error}");
        // A name of the same length, as a file with shared experts has it.
        let mut shared = plain.bytes();
        let name = b"blk.0.ffn_gate_inp.weight";
        let at = shared.windows(name.len()).position(|window| window == name).unwrap();
        shared[at..at + name.len()].copy_from_slice(b"blk.0.ffn_up_shexp.weight");
        let gguf = Gguf::from_bytes(shared.into()).unwrap();
        let error = Family::of(&gguf).unwrap_err().to_string();
        assert!(error.contains("ffn_up_shexp") && error.contains("llamacpp"), "{error}");
    }

    #[test]
    fn a_llama_file_may_have_biases() {
        for qkv_bias in [false, true] {
            let synth = SyntheticModel { qkv_bias, ..SyntheticModel::default().llama() };
            let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
            assert_eq!(Family::of(&gguf).unwrap().has_qkv_bias(&gguf), qkv_bias);
        }
    }
}
