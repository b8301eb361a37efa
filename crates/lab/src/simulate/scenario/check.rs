//! From a text to a scenario that makes a world, or to what is wrong with it.

use stint_types::units::Timestamp;

use super::Scenario;

/// The world of `stint simulate` without a scenario: five models, an outage, a price cut and a silent regression.
const DEFAULT_SCENARIO: &str = include_str!("../usual.toml");

/// Why a text is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, or not these words.
    #[error("the scenario cannot be read: correct what is named below")]
    Toml(#[from] toml::de::Error),
    /// A value that makes no world.
    #[error("{what}: {remedy}")]
    Wrong {
        /// What is wrong.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// When it is not one.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let scenario: Scenario = toml::from_str(text)?;
        scenario.check()?;
        Ok(scenario)
    }

    /// The scenario that ships with the binary.
    ///
    /// # Errors
    /// Never, as the tests see.
    pub fn built_in() -> Result<Scenario, ScenarioError> {
        Scenario::parse(DEFAULT_SCENARIO)
    }

    /// The moment it begins.
    pub fn start(&self) -> Timestamp {
        self.begins.parse().unwrap_or_default()
    }

    fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |what: String, remedy| Err(ScenarioError::Wrong { what, remedy });
        if self.begins.parse::<Timestamp>().is_err() {
            return wrong(format!("begins = {:?}", self.begins), "write a day, like \"2026-11-02\"");
        }
        if !(self.arrivals.per_second > 0.0 && self.arrivals.burst > 0.0) {
            return wrong("no requests arrive".into(), "let per_second and burst be above 0");
        }
        if !(0.0..=1.0).contains(&self.arrivals.wave) {
            return wrong("the wave is no share".into(), "let it be between 0 and 1");
        }
        if !self.classes.iter().any(|class| class.share > 0.0) {
            return wrong("there is no work".into(), "add a [[class]] with a share");
        }
        if self.classes.iter().any(|class| class.share < 0.0 || class.prompt < 1.0 || class.solution < 1.0) {
            return wrong(
                "a class has less than nothing".into(),
                "let share, prompt and solution be above 0",
            );
        }
        for model in &self.models {
            if model.slots == 0 || model.thinking <= 0.0 {
                return wrong(format!("nobody serves {}", model.name), "give it slots and a usual thinking");
            }
            if self.models.iter().filter(|other| other.name == model.name).count() > 1 {
                return wrong(format!("two models {}", model.name), "give each its own name");
            }
        }
        match self.events.iter().find(|turn| !self.models.iter().any(|model| model.name == turn.model)) {
            Some(turn) => wrong(format!("no model {}", turn.model), "name one that the scenario has"),
            None => Ok(()),
        }
    }
}
