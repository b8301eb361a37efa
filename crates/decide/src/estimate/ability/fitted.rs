//! The scale of abilities that ships. Written by `make abilities`; do not change it by hand.

use stint_types::catalog::{AbilityLevel, ClassLevels};

use super::scale::{AbilityScale, BenchmarkLine, GuessScale};

const fn line(at_half: f64, slope: f64, spread: f64) -> BenchmarkLine {
    BenchmarkLine { at_half, slope, spread }
}

const fn level(logit: f64, spread: f64) -> AbilityLevel {
    AbilityLevel { logit, spread }
}

/// The scale of abilities that ships.
pub static SHIPPED: AbilityScale = AbilityScale {
    thinking: [
        line(0.000, 1.000, 0.150),
        line(1.133, 0.594, 0.275),
        line(1.014, 0.302, 0.347),
        line(2.148, 0.489, 0.173),
        line(1.852, 0.266, 0.203),
        line(2.120, 0.355, 0.229),
    ],
    plain: [
        line(0.000, 1.000, 0.150),
        line(1.133, 0.594, 0.275),
        line(1.249, 0.391, 0.542),
        line(2.166, 0.687, 0.322),
        line(1.729, 0.306, 0.366),
        line(2.120, 0.355, 0.229),
    ],
    class_after_thought: ClassLevels {
        general: level(0.000, 0.000),
        math: level(0.175, 0.000),
        code: level(-0.110, 0.000),
        agentic: level(-0.015, 0.000),
    },
    thought: ClassLevels {
        general: level(0.408, 0.252),
        math: level(0.580, 0.300),
        code: level(0.296, 0.198),
        agentic: level(0.408, 0.252),
    },
    guess: GuessScale {
        at_one_billion: level(-0.525, 0.616),
        per_log_parameter: 0.339,
        family_spread: 0.393,
        usual_spread: 0.980,
    },
};
