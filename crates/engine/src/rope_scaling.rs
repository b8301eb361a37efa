//! By how much the numbers of a head are rotated at each position: the base frequencies, and what models do to them to read texts
//! that are longer than those they learnt from.

use stint_gguf::Gguf;

use super::error::EngineError;
use super::weights::vector;

/// How a model rotates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RopeSpec {
    pub(crate) base: f32,
    pub(crate) scaling: RopeScaling,
    /// What each pair's frequency is divided by, as Llama 3.1 has it; by 1 where it is empty.
    pub(crate) divisors: Vec<f32>,
}

/// What is done to the frequencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RopeScaling {
    None,
    /// Positions are divided by it.
    Linear(f32),
    Yarn(YarnScaling),
}

/// Slow rotations are slowed down, quick ones are not, and between the two bounds both are mixed (arXiv 2309.00071).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct YarnScaling {
    factor: f32,
    /// The longest text that the model learnt from before.
    original_context: f32,
    /// Turns over that text from which on nothing changes, and up to which all does.
    beta_fast: f32,
    beta_slow: f32,
    attention_factor: f32,
}

impl RopeSpec {
    /// What a file says.
    pub(crate) fn read(gguf: &Gguf, architecture: &str, head_dim: u32) -> Result<Self, EngineError> {
        let key = |name: &str| format!("{architecture}.rope.{name}");
        let rotated = gguf.integer(&key("dimension_count")).unwrap_or(head_dim);
        if rotated != head_dim {
            return Err(EngineError::Model(format!(
                "it rotates {rotated} of a head's {head_dim} numbers, and only all of them can be rotated"
            )));
        }
        let name = "rope_freqs.weight";
        let divisors = gguf.has_tensor(name).then(|| vector(gguf, name, head_dim / 2)).transpose()?;
        Ok(Self {
            base: gguf.float(&key("freq_base")).unwrap_or(10_000.0),
            scaling: RopeScaling::read(gguf, architecture)?,
            divisors: divisors.unwrap_or_default(),
        })
    }

    /// Cosine and sine of every position and pair, made on the host: shaders' own are too coarse for large angles.
    #[expect(clippy::cast_possible_truncation, reason = "the table is of f32")]
    pub(crate) fn rotations(&self, positions: u32, head_dim: u32) -> Vec<[f32; 2]> {
        let frequencies: Vec<f64> = (0..head_dim / 2).map(|pair| self.frequency(pair, head_dim)).collect();
        let length = self.scaling.length();
        let turn = |position: u32, frequency: f64| {
            let (sine, cosine) = (f64::from(position) * frequency).sin_cos();
            [(cosine * length) as f32, (sine * length) as f32]
        };
        (0..positions).flat_map(|position| frequencies.iter().map(move |f| turn(position, *f))).collect()
    }

    fn frequency(&self, pair: u32, head_dim: u32) -> f64 {
        let half = f64::from(head_dim / 2);
        let plain = f64::from(self.base).powf(-f64::from(pair) / half);
        let plain = plain / self.divisors.get(pair as usize).map_or(1.0, |divisor| f64::from(*divisor));
        match &self.scaling {
            RopeScaling::None => plain,
            RopeScaling::Linear(factor) => plain / f64::from(*factor),
            RopeScaling::Yarn(yarn) => {
                let kept = yarn.share_kept(f64::from(pair), half, f64::from(self.base));
                plain * kept + plain / f64::from(yarn.factor) * (1.0 - kept)
            }
        }
    }
}

impl RopeScaling {
    fn read(gguf: &Gguf, architecture: &str) -> Result<Self, EngineError> {
        let key = |name: &str| format!("{architecture}.rope.{name}");
        let float = |name: &str| gguf.float(&key(name));
        let factor = float("scaling.factor").or_else(|| float("scale_linear")).unwrap_or(1.0);
        if !factor.is_finite() || factor < 1.0 {
            return Err(EngineError::Model(format!(
                "its rotations are scaled by {factor}, which cannot be right"
            )));
        }
        match gguf.text(&key("scaling.type")).unwrap_or("linear") {
            "none" => Ok(Self::None),
            "linear" | "yarn" if factor <= 1.0 => Ok(Self::None),
            "linear" => Ok(Self::Linear(factor)),
            "yarn" => {
                let log_multiplier = "scaling.yarn_log_multiplier";
                if float(log_multiplier).unwrap_or(0.0) != 0.0 {
                    return Err(EngineError::Model(format!(
                        "its rotations are scaled with {}, which is not known here: serve it by llama.cpp (`kind = \"llamacpp\"`)",
                        key(log_multiplier)
                    )));
                }
                let context = gguf.integer(&format!("{architecture}.context_length"));
                let original = gguf.integer(&key("scaling.original_context_length")).or(context);
                Ok(Self::Yarn(YarnScaling {
                    factor,
                    original_context: original.unwrap_or(0) as f32,
                    beta_fast: float("scaling.yarn_beta_fast").unwrap_or(32.0),
                    beta_slow: float("scaling.yarn_beta_slow").unwrap_or(1.0),
                    attention_factor: float("scaling.attn_factor").unwrap_or(1.0),
                }))
            }
            other => Err(EngineError::Model(format!(
                "its rotations are scaled the {other} way, and only linear, yarn and Llama 3's are known: \
                 serve it by llama.cpp (`kind = \"llamacpp\"`)"
            ))),
        }
    }

    /// What queries and keys are multiplied with.
    fn length(&self) -> f64 {
        match self {
            Self::Yarn(yarn) => f64::from(yarn.attention_factor) * (1.0 + 0.1 * f64::from(yarn.factor).ln()),
            Self::None | Self::Linear(_) => 1.0,
        }
    }
}

impl YarnScaling {
    /// The share of a pair's rotation that stays as it was.
    fn share_kept(&self, pair: f64, half: f64, base: f64) -> f64 {
        // The pair that makes so many turns over the original text.
        let pair_of = |turns: f32| {
            let wavelength = f64::from(self.original_context) / (f64::from(turns) * std::f64::consts::TAU);
            half * wavelength.ln() / base.ln()
        };
        let low = pair_of(self.beta_fast).floor().max(0.0);
        let high = pair_of(self.beta_slow).ceil().min(2.0 * half - 1.0);
        1.0 - ((pair - low) / (high - low).max(0.001)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_gguf::synth::SyntheticModel;

    fn spec(floats: &[(&'static str, f32)], kind: Option<&'static str>) -> Result<RopeSpec, EngineError> {
        let texts = kind.map(|kind| ("qwen3.rope.scaling.type", kind)).into_iter().collect();
        let synth = SyntheticModel { floats: floats.to_vec(), texts, ..SyntheticModel::default() };
        RopeSpec::read(&Gguf::from_bytes(synth.bytes().into()).unwrap(), "qwen3", 16)
    }

    #[test]
    fn both_spellings_of_linear_scaling_divide_positions() {
        for floats in [("qwen3.rope.scale_linear", 4.0), ("qwen3.rope.scaling.factor", 4.0)] {
            let (plain, scaled) = (spec(&[], None).unwrap(), spec(&[floats], None).unwrap());
            let (plain, scaled) = (plain.rotations(3, 16), scaled.rotations(9, 16));
            assert_eq!(plain[8..16], scaled[4 * 8..5 * 8]);
            assert_eq!(plain[16..24], scaled[8 * 8..9 * 8]);
        }
    }

    #[test]
    fn yarn_keeps_quick_rotations_and_slows_slow_ones() {
        let yarn = spec(&[("qwen3.rope.scaling.factor", 4.0)], Some("yarn")).unwrap();
        let plain = spec(&[], None).unwrap();
        let ratio = |pair| plain.frequency(pair, 16) / yarn.frequency(pair, 16);
        assert!((ratio(0) - 1.0).abs() < 1e-9, "{}", ratio(0));
        assert!((ratio(7) - 4.0).abs() < 1e-9, "{}", ratio(7));
        assert!(ratio(1) > 1.0 && ratio(1) < 4.0, "{}", ratio(1));
        let [cosine, sine] = yarn.rotations(1, 16)[0];
        assert!((cosine - 1.138_629_4).abs() < 1e-6 && sine == 0.0, "{cosine}");
    }

    #[test]
    fn divisors_hold_for_their_pairs() {
        let plain = spec(&[], None).unwrap();
        let divided = RopeSpec { divisors: vec![1.0, 2.0], ..plain.clone() };
        assert!((plain.frequency(0, 16) - divided.frequency(0, 16)).abs() < 1e-12);
        assert!((plain.frequency(1, 16) - 2.0 * divided.frequency(1, 16)).abs() < 1e-12);
    }

    #[test]
    fn a_way_of_scaling_that_is_not_known_is_refused() {
        let error = spec(&[("qwen3.rope.scaling.factor", 4.0)], Some("longrope")).unwrap_err().to_string();
        assert!(error.contains("longrope"), "{error}");
        let floats = [("qwen3.rope.scaling.factor", 4.0), ("qwen3.rope.scaling.yarn_log_multiplier", 0.1)];
        let error = spec(&floats, Some("yarn")).unwrap_err().to_string();
        assert!(error.contains("qwen3.rope.scaling.yarn_log_multiplier"), "{error}");
    }
}
