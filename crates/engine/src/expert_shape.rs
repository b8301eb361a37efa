//! The experts of a layer: what a file says of them, and what of it the kernels can do.

use stint_gguf::Gguf;

use super::error::EngineError;

/// A feed-forward network of experts, of which each token goes through a few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpertShape {
    pub(crate) count: u32,
    /// How many of them a token goes through.
    pub(crate) used: u32,
    /// Whether the shares of those come to one; otherwise those of all experts do.
    pub(crate) normalised: bool,
}

/// One workgroup counts them in its memory.
const EXPERTS_MAX: u32 = 1024;

/// A softmax over all experts, by the number that files have for it.
const SOFTMAX: u32 = 1;

impl ExpertShape {
    pub(crate) fn read(gguf: &Gguf, architecture: &str) -> Result<Self, EngineError> {
        let key = |name: &str| format!("{architecture}.{name}");
        let integer =
            |name: &str| gguf.integer(&key(name)).ok_or_else(|| stint_gguf::GgufError::MissingKey(key(name)));
        let shape = Self {
            count: integer("expert_count")?,
            used: integer("expert_used_count")?,
            normalised: gguf.flag(&key("expert_weights_norm")).unwrap_or(true),
        };
        let refuse = |what: &str| {
            Err(EngineError::Model(format!("{what}: serve it by llama.cpp (`kind = \"llamacpp\"`)")))
        };
        if shape.used == 0 || shape.used > shape.count || shape.count > EXPERTS_MAX {
            return refuse("it has no experts that a token goes through, or too many");
        }
        if ![0, SOFTMAX].contains(&gguf.integer(&key("expert_gating_func")).unwrap_or(SOFTMAX)) {
            return refuse("its experts are chosen otherwise than by a softmax");
        }
        if gguf.integer(&key("expert_group_count")).unwrap_or(1) > 1 {
            return refuse("its experts are chosen among groups");
        }
        let scale = gguf.float(&key("expert_weights_scale")).unwrap_or(1.0);
        if scale != 0.0 && (scale - 1.0).abs() > f32::EPSILON {
            return refuse("what its experts give is scaled");
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_gguf::synth::SyntheticModel;

    fn read(synth: &SyntheticModel) -> Result<ExpertShape, String> {
        let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
        ExpertShape::read(&gguf, "qwen3moe").map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_says_how_many_experts_there_are_and_how_many_are_used() {
        let plain = SyntheticModel::default().qwen3moe(6, 2);
        assert_eq!(read(&plain), Ok(ExpertShape { count: 6, used: 2, normalised: true }));
        let flags = vec![("qwen3moe.expert_weights_norm", false)];
        assert!(!read(&SyntheticModel { flags, ..plain }).unwrap().normalised);
    }

    #[test]
    fn what_would_give_other_answers_is_refused() {
        let plain = SyntheticModel::default().qwen3moe(6, 2);
        let check = |synth: SyntheticModel, what: &str| {
            let error = read(&synth).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        check(plain.clone().qwen3moe(6, 0), "no experts");
        check(plain.clone().qwen3moe(6, 7), "or too many");
        check(SyntheticModel::default(), "qwen3moe.expert_count");
        let with = |key, value| SyntheticModel { integers: vec![(key, value)], ..plain.clone() };
        check(with("qwen3moe.expert_gating_func", 2), "otherwise than by a softmax");
        check(with("qwen3moe.expert_group_count", 4), "among groups");
        assert!(read(&with("qwen3moe.expert_gating_func", 1)).is_ok());
        let floats = vec![("qwen3moe.expert_weights_scale", 2.5)];
        check(SyntheticModel { floats, ..plain.clone() }, "is scaled");
    }
}
