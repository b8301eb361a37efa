//! Budgets in: what a request states of tokens, money, time, effort and its episode. Each API reads its own members in its own
//! folder and hands them to a `BudgetParser`; where several members state the same, the least wins.

mod episode;
mod extension;
mod foreign;
mod members;
mod parser;
mod without_thinking;

pub(super) use episode::{from_metadata, parse_episode_id, tool_calls};
#[cfg(test)]
pub(super) use extension::EXTENSION_MEMBERS;
pub(super) use extension::{read_extension, read_headers};
pub(super) use foreign::{TOTALS, read_foreign_thinking, read_foreign_totals, token_limit};
pub(super) use members::cost;
pub(super) use parser::{BudgetParser, EffortTable};
pub(super) use without_thinking::{episode_only, extension_only};
