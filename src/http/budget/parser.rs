//! Collects the budgets that one request states, whichever members state them. The readers of each API, of our own extension
//! and of other servers' members call it.

use std::collections::BTreeMap;

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use stint_types::chat::{Budget, MemberNames, ReasoningEffort, TaskBudget, Tool};
use stint_types::units::{Count, Effort, EpisodeId, Tokens};

use super::episode::{EpisodeSettings, NamedTools};

/// What states a budget behind a model's name.
const SUFFIX: &str = "the suffix of model";

/// The effort words and what they mean.
pub(in crate::http) type EffortTable = BTreeMap<String, Effort>;

/// Collects what is stated about budgets.
#[derive(Debug)]
pub(in crate::http) struct BudgetParser<'a> {
    efforts: &'a EffortTable,
    pub(super) budget: Budget,
    /// The tools that are limited by name.
    tools: Vec<NamedTools>,
    /// False if the caller wants no thoughts shown.
    pub(in crate::http) thoughts: bool,
    /// True if the caller wants them back all the same, without their text: what their provider signed.
    pub(in crate::http) sealed: bool,
}

impl<'a> BudgetParser<'a> {
    /// One for an API that calls the members by these names.
    pub(in crate::http) fn new(efforts: &'a EffortTable, members: MemberNames) -> BudgetParser<'a> {
        let budget = Budget { members, ..Budget::default() };
        BudgetParser { efforts, budget, tools: Vec::new(), thoughts: true, sealed: false }
    }

    /// All that was stated.
    pub(in crate::http) fn finish(self) -> Budget {
        self.budget
    }

    /// The same, for a request with these tools.
    ///
    /// # Errors
    /// 400 where calls of another tool are limited.
    pub(in crate::http) fn finish_with_tools(self, tools: &[Tool]) -> Result<Budget, ApiError> {
        self.tools.iter().try_for_each(|named| named.check(tools))?;
        Ok(self.budget)
    }

    /// The most tool calls of one answer (`max_tool_calls`).
    pub(in crate::http) fn max_tool_calls(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        take_least(&mut self.budget.tool_calls_max, fields.integer("max_tool_calls")?.map(Count));
        Ok(())
    }

    /// What the model is told of its whole task.
    pub(in crate::http) fn task(&mut self, task: TaskBudget) {
        self.budget.task = Some(task);
    }

    /// What is stated of the episode. The first name holds; of limits the least.
    pub(super) fn apply_episode(&mut self, settings: EpisodeSettings) {
        self.budget.episode = self.budget.episode.take().or(settings.episode);
        self.budget.episode_limits.lower(&settings.limits);
        self.tools.extend(settings.named_tools);
    }

    /// The episode's name in the request's metadata. A name that was stated elsewhere overrides it.
    pub(in crate::http) fn name_episode(&mut self, episode: Option<EpisodeId>) {
        self.apply_episode(EpisodeSettings { episode, ..EpisodeSettings::default() });
    }

    /// `auto:low` or `reasoner:t=200`; gives back the name without it.
    pub(in crate::http) fn suffix(&mut self, model: &str) -> Result<String, ApiError> {
        let Some((name, suffix)) = model.rsplit_once(':') else { return Ok(model.to_owned()) };
        if let Some(tokens) = suffix.strip_prefix("t=") {
            let tokens = tokens.parse().map_err(|_| {
                ApiError::invalid(
                    Some("model"),
                    "the suffix t= must be followed by a number of thinking tokens",
                )
            })?;
            self.thinking(SUFFIX, Some(Tokens(tokens)));
        } else if self.efforts.contains_key(suffix) {
            self.effort_word(SUFFIX, Some(suffix.to_owned()))?;
        } else {
            // Names of models may have colons themselves.
            return Ok(model.to_owned());
        }
        Ok(name.to_owned())
    }

    /// The most thinking tokens.
    pub(in crate::http) fn thinking(&mut self, member: &'static str, tokens: Option<Tokens>) {
        if take_least(&mut self.budget.thinking, tokens) {
            self.budget.members.thinking = member;
        }
    }

    /// The most tokens of thought and answer together; true if the member is there.
    ///
    /// # Errors
    /// 400 where it is 0 or no number.
    pub(in crate::http) fn total(
        &mut self,
        fields: &mut Fields,
        key: &'static str,
    ) -> Result<bool, ApiError> {
        let tokens = fields.integer(key)?;
        if tokens == Some(0) {
            return Err(ApiError::invalid(Some(key), "must be at least 1"));
        }
        if take_least(&mut self.budget.total, tokens.map(Tokens)) {
            self.budget.members.total = key;
        }
        Ok(tokens.is_some())
    }

    /// An effort word.
    pub(in crate::http) fn effort_word(
        &mut self,
        param: &'static str,
        word: Option<String>,
    ) -> Result<(), ApiError> {
        let Some(word) = word else { return Ok(()) };
        let effort = self.effort(param, &word)?;
        self.reasoning_effort(param, ReasoningEffort { effort, word: Some(word) });
        Ok(())
    }

    /// What an effort word stands for.
    ///
    /// # Errors
    /// 400 where it is not one, also of a word that another one overrides.
    pub(in crate::http) fn effort(&self, param: &str, word: &str) -> Result<Effort, ApiError> {
        self.efforts.get(word).copied().ok_or_else(|| {
            let known = self.efforts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            ApiError::invalid(Some(param), format!("must be one of {known}"))
        })
    }

    /// How deep to think.
    pub(super) fn reasoning_effort(&mut self, member: &'static str, effort: ReasoningEffort) {
        if self.budget.reasoning_effort.as_ref().is_none_or(|stated| effort.effort < stated.effort) {
            self.budget.reasoning_effort = Some(effort);
            self.budget.members.reasoning_effort = member;
        }
    }
}

/// Lowers what is stated; true if `value` is now the least.
pub(super) fn take_least<T: PartialOrd>(stated: &mut Option<T>, value: Option<T>) -> bool {
    let Some(value) = value.filter(|value| stated.as_ref().is_none_or(|least| value < least)) else {
        return false;
    };
    *stated = Some(value);
    true
}
