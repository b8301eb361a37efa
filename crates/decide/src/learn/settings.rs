//! How fast is learned, and how fast forgotten.

/// How fast the store learns and forgets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// What an older outcome of a model counts when a newer one of the same model has come, below 1: 0.999 halves it
    /// over about 700 outcomes. A model that is rarely used forgets as rarely.
    pub forget: f64,
    /// How many outcomes the prior's prediction counts for, where it is sure of itself: a prediction that comes with
    /// a spread of its own counts for fewer.
    pub prior_weight: f64,
    /// What the spread of a belief is multiplied by before it is handed out, once much is known: below 1 explores less
    /// than a draw from the posterior would, as the value of an outcome falls with how much is known already.
    pub spread: f64,
    /// How many outcomes, the prior's among them, count as much: with none the spread is handed out whole.
    pub ample: f64,
    /// How many more failures (or successes) than believed, in a row of outcomes, raise the alarm that a model has
    /// changed.
    pub alarm: f64,
    /// How much worse (or better) than believed outcomes may be on average without counting for that.
    pub alarm_slack: f64,
    /// What an alarm leaves of what all replicas learned before it, as a share; nothing of how good the model is
    /// altogether.
    pub alarm_kept: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            forget: 0.9998,
            prior_weight: 200.0,
            spread: 0.1,
            ample: 20.0,
            alarm: 8.0,
            alarm_slack: 0.15,
            alarm_kept: 0.1,
        }
    }
}

impl Settings {
    /// What a belief's spread is multiplied by, when it stands on so many outcomes.
    pub(super) fn spread_factor(&self, outcomes: f64) -> f64 {
        self.spread + (1.0 - self.spread) * self.ample / (self.ample + outcomes)
    }

    /// What so many alarms leave.
    pub(super) fn kept_after_alarms(&self, alarms: u32) -> f64 {
        self.alarm_kept.powi(i32::try_from(alarms).unwrap_or(i32::MAX))
    }

    /// The rate of forgetting, kept off the ends where nothing or everything would be.
    pub(super) fn forget(&self) -> f64 {
        self.forget.clamp(0.5, 0.999_999)
    }
}
