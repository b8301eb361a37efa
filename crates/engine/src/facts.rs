//! What a model file would take to run, as far as the file tells.

use stint_gguf::Gguf;

use super::error::EngineError;
use super::family::is_of_experts;
use super::kv_format::KvFormat;
use super::repack::{number_bytes, scale_bytes};
use super::shape::ModelShape;

/// What a model is, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    /// How many layers it has.
    pub layers: u32,
    /// How many numbers it has learnt.
    pub parameters: u64,
    /// How many experts each layer has; none in a dense model.
    pub experts: u32,
    /// How many of them a token goes through.
    pub experts_used: u32,
    /// How many of the numbers a token goes through, experts that are not chosen left out.
    pub parameters_used: u64,
    /// The most tokens of prompt and answer together.
    pub context: u32,
    /// Bytes of its weights on the device.
    pub weight_bytes: u64,
    /// Bytes of the cache for each token of a sequence, in the format that is usual.
    pub kv_token_bytes: u64,
    /// The same in 8 bits.
    pub kv_token_bytes_q8_0: u64,
}

/// What a file's model is.
///
/// # Errors
/// Why the engine could not run it.
pub fn describe(gguf: &Gguf) -> Result<ModelFacts, EngineError> {
    let shape = ModelShape::read(gguf)?;
    gguf.check_tensors()?;
    let mut facts = ModelFacts {
        layers: shape.layers,
        parameters: 0,
        experts: shape.experts.map_or(0, |experts| experts.count),
        experts_used: shape.experts.map_or(0, |experts| experts.used),
        parameters_used: 0,
        context: shape.context,
        weight_bytes: 0,
        kv_token_bytes: shape.kv_token_bytes(KvFormat::default()),
        kv_token_bytes_q8_0: shape.kv_token_bytes(KvFormat::Q8_0),
    };
    for name in gguf.tensor_names() {
        let tensor = gguf.tensor(name)?;
        let row = number_bytes(tensor.kind, tensor.columns) + scale_bytes(tensor.kind, tensor.columns);
        let numbers = tensor.rows as u64 * tensor.columns as u64;
        facts.parameters += numbers;
        facts.parameters_used += match shape.experts {
            Some(experts) if is_of_experts(name) => {
                numbers / u64::from(experts.count) * u64::from(experts.used)
            }
            _ => numbers,
        };
        facts.weight_bytes += tensor.rows as u64 * row as u64;
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_gguf::TensorType;
    use stint_gguf::synth::SyntheticModel;

    #[test]
    fn a_file_tells_what_its_model_takes() {
        let of = |kind| {
            let synth = SyntheticModel { kind, hidden: 256, feed_forward: 256, ..SyntheticModel::default() };
            describe(&Gguf::from_bytes(synth.bytes().into()).unwrap()).unwrap()
        };
        let (plain, packed) = (of(TensorType::F32), of(TensorType::Q8_0));
        assert_eq!((plain.layers, plain.context, plain.kv_token_bytes), (2, 128, 2 * 2 * 2 * 16 * 2));
        assert_eq!(plain.kv_token_bytes_q8_0, 2 * 2 * 2 * (16 + 4));
        assert_eq!(plain.weight_bytes, plain.parameters * 4);
        assert_eq!(packed.parameters, plain.parameters);
        assert_eq!((plain.experts, plain.parameters_used), (0, plain.parameters));
        assert!(packed.weight_bytes < plain.weight_bytes * 3 / 10, "{packed:?}");
    }

    #[test]
    fn a_token_goes_through_some_of_the_experts_and_all_of_them_take_memory() {
        let synth = SyntheticModel::default().qwen3moe(8, 2);
        let facts = describe(&Gguf::from_bytes(synth.bytes().into()).unwrap()).unwrap();
        assert_eq!((facts.experts, facts.experts_used), (8, 2));
        // Two layers of 32 by 64, three times, of which six in eight are not chosen.
        assert_eq!(facts.parameters - facts.parameters_used, 2 * 3 * 32 * 64 * 6);
        assert_eq!(facts.weight_bytes, facts.parameters * 4);
    }
}
