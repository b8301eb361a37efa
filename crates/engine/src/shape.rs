//! The numbers that describe a model, read from its file and checked against what the kernels can do.

use stint_gguf::Gguf;

use super::error::EngineError;
use super::expert_shape::ExpertShape;
use super::family::{Family, RopePairs};
use super::kv_format::KvFormat;
use super::rope_scaling::RopeSpec;

/// The dimensions of a model, and what sets its family apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelShape {
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) heads: u32,
    pub(crate) kv_heads: u32,
    pub(crate) head_dim: u32,
    /// The width of a feed-forward network, or of each of its experts.
    pub(crate) feed_forward: u32,
    pub(crate) experts: Option<ExpertShape>,
    pub(crate) vocab: u32,
    pub(crate) context: u32,
    pub(crate) epsilon: f32,
    pub(crate) rope: RopeSpec,
    pub(crate) rope_pairs: RopePairs,
    /// Whether queries and keys are normalised.
    pub(crate) qk_norm: bool,
    /// Whether queries, keys and values have biases.
    pub(crate) qkv_bias: bool,
}

/// The attention kernel keeps one head in the shared memory of one workgroup.
const HEAD_DIM_MAX: u32 = 256;

impl ModelShape {
    pub(crate) fn read(gguf: &Gguf) -> Result<Self, EngineError> {
        let family = Family::of(gguf)?;
        let integer = |name: &str| {
            let key = format!("{}.{name}", family.architecture);
            gguf.integer(&key).ok_or(stint_gguf::GgufError::MissingKey(key))
        };
        // What differs from layer to layer has no single value, and the usual one would be wrong.
        let usual = |name: &str, usual: u32| {
            let key = format!("{}.{name}", family.architecture);
            let differs = || {
                EngineError::Model(format!(
                    "its layers differ in `{key}`: serve it by llama.cpp (`kind = \"llamacpp\"`)"
                ))
            };
            if gguf.has_key(&key) { gguf.integer(&key).ok_or_else(differs) } else { Ok(usual) }
        };
        let float = |name: &str| {
            let key = format!("{}.{name}", family.architecture);
            gguf.float(&key).ok_or(stint_gguf::GgufError::MissingKey(key))
        };
        let experts =
            family.has_experts().then(|| ExpertShape::read(gguf, family.architecture)).transpose()?;
        let width = if experts.is_some() { "expert_feed_forward_length" } else { "feed_forward_length" };
        let heads = integer("attention.head_count")?;
        let hidden = integer("embedding_length")?;
        let head_dim = usual("attention.key_length", hidden / heads.max(1))?;
        if usual("attention.value_length", head_dim)? != head_dim {
            return Err(EngineError::Model(
                "the heads of its values are not as large as those of its keys".into(),
            ));
        }
        let shape = Self {
            layers: integer("block_count")?,
            hidden,
            heads,
            kv_heads: usual("attention.head_count_kv", heads)?,
            head_dim,
            feed_forward: integer(width)?,
            experts,
            vocab: u32::try_from(gguf.tensor("token_embd.weight")?.rows).unwrap_or(u32::MAX),
            context: integer("context_length")?,
            epsilon: float("attention.layer_norm_rms_epsilon")?,
            rope: RopeSpec::read(gguf, family.architecture, head_dim)?,
            rope_pairs: family.pairs,
            qk_norm: family.has_qk_norm(),
            qkv_bias: family.has_qkv_bias(gguf),
        };
        shape.check()?;
        Ok(shape)
    }

    /// Rows of queries, keys and values together, in numbers.
    pub(crate) fn qkv(&self) -> u32 {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// The bytes of the cache for one token, all layers together.
    pub(crate) fn kv_token_bytes(&self, format: KvFormat) -> u64 {
        u64::from(self.layers) * 2 * u64::from(self.kv_heads) * format.head_bytes(self.head_dim)
    }

    /// The rows of a layer's queries, in numbers.
    pub(crate) fn queries(&self) -> u32 {
        self.heads * self.head_dim
    }

    /// How many feed-forward networks a token goes through in each layer.
    pub(crate) fn networks(&self) -> u32 {
        self.experts.map_or(1, |experts| experts.used)
    }

    fn check(&self) -> Result<(), EngineError> {
        let refuse = |what: &str| Err(EngineError::Model(what.to_owned()));
        let sizes = [self.layers, self.hidden, self.heads, self.kv_heads, self.head_dim, self.feed_forward];
        if sizes.iter().any(|size| *size == 0 || *size > 1 << 20) || self.vocab == 0 || self.context == 0 {
            return refuse("one of its dimensions is zero or absurd");
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return refuse("its heads cannot be divided among its key-value heads");
        }
        if !self.head_dim.is_multiple_of(4) || self.head_dim > HEAD_DIM_MAX {
            return refuse("its head dimension is not a multiple of 4 up to 256");
        }
        if u64::from(self.networks()) * u64::from(self.feed_forward) > 1 << 20 {
            return refuse("a token goes through too many numbers of its experts");
        }
        if !self.hidden.is_multiple_of(4) || !self.feed_forward.is_multiple_of(4) {
            return refuse("its hidden or feed-forward dimension is not a multiple of 4");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_gguf::synth::SyntheticModel;

    fn read(synth: &SyntheticModel) -> Result<ModelShape, EngineError> {
        ModelShape::read(&Gguf::from_bytes(synth.bytes().into()).unwrap())
    }

    #[test]
    fn the_shape_is_what_the_file_says() {
        let shape = read(&SyntheticModel::default()).unwrap();
        assert_eq!((shape.heads, shape.kv_heads, shape.head_dim, shape.vocab), (4, 2, 16, 64));
        assert_eq!(shape.qkv(), 128);
    }

    #[test]
    fn shapes_that_the_kernels_cannot_do_are_refused() {
        assert!(read(&SyntheticModel { kv_heads: 3, ..SyntheticModel::default() }).is_err());
        assert!(read(&SyntheticModel { head_dim: 6, ..SyntheticModel::default() }).is_err());
        assert!(read(&SyntheticModel { head_dim: 512, ..SyntheticModel::default() }).is_err());
        assert!(read(&SyntheticModel { hidden: 30, ..SyntheticModel::default() }).is_err());
    }
}
