//! How hard a request looks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::units::{Chance, Difficulty, Tokens};

use super::{Held, LogNormal};

/// What kind of work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskClass {
    /// Numbers and proofs.
    Math,
    /// Programs.
    Code,
    /// Finding something in a given text.
    Extraction,
    /// One option of several.
    MultipleChoice,
    /// A run with tools.
    Agentic,
    /// Everything else.
    Chat,
}

impl TaskClass {
    /// The word in metrics and `/v1/plan`.
    pub fn word(self) -> &'static str {
        match self {
            TaskClass::Math => "math",
            TaskClass::Code => "code",
            TaskClass::Extraction => "extraction",
            TaskClass::MultipleChoice => "multiple_choice",
            TaskClass::Agentic => "agentic",
            TaskClass::Chat => "chat",
        }
    }
}

/// What one model is expected to need and to reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelDemand {
    /// How long it would think.
    pub thinking: LogNormal,
    /// How long its answer would be, on average.
    pub solution: Tokens,
    /// An upper bound of the prompt's tokens for this model.
    pub prompt: Tokens,
    /// The chance of a right answer after a finished thought.
    pub done: Chance,
    /// The chance of a right answer without any thought.
    pub blind: Chance,
    /// How fast a cut thought's chance rises from `blind` towards `done` (see [`ModelDemand::cut`]).
    pub bend: f64,
    /// How unsure `done` is: the standard deviation of what is believed about it; 0 where nothing is explored.
    pub spread: f64,
}

impl ModelDemand {
    /// `p_cut`, the chance of a right answer after a thought that was cut at `t`: `blind + (done − blind)·
    /// r^bend`, where r = t / E[L | L > t] is how much of the thought there was, as far as one can tell.
    pub fn cut(&self, t: f64) -> f64 {
        self.cut_of(t, self.thinking.mean_beyond(t))
    }

    fn cut_of(&self, t: f64, whole: f64) -> f64 {
        let share = t / whole.max(1.0);
        // share^bend, in half the time.
        let rise = (self.bend * share.clamp(f64::MIN_POSITIVE, 1.0).ln()).exp();
        self.blind.get() + (self.done.get() - self.blind.get()) * rise
    }

    /// The chance of a right answer with a thinking budget of `t`: F(t)·done + (1 − F(t))·cut(t).
    pub fn success(&self, t: Tokens) -> Chance {
        self.success_held(t, &self.thinking.held(t.as_f64(), self.thinking.mean()))
    }

    /// The same, where what becomes of the thoughts is known already.
    pub fn success_held(&self, t: Tokens, held: &Held) -> Chance {
        if t == Tokens::ZERO {
            return self.blind;
        }
        let cut = self.cut_of(t.as_f64(), held.beyond);
        Chance::new(held.finished * self.done.get() + (1.0 - held.finished) * cut)
    }
}

/// The estimate for one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// What kind of work it is.
    pub class: TaskClass,
    /// A summary for people and metrics.
    pub difficulty: Difficulty,
    /// How sure the estimate is, 0 (a guess) to 1.
    pub confidence: Chance,
    /// What each model would need.
    pub models: BTreeMap<Arc<str>, ModelDemand>,
}
