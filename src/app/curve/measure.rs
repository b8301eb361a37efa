//! Asks all tasks under rising thinking budgets, within a sum of money.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::sleep;

use crate::app::output::print_line;
use stint_types::units::{Money, Tokens};

use super::journal::{AnswerId, CurveJournal, CurveJournalError, JudgedAnswer};
use super::server::{CurveServer, ModelAnswer, ServerError, ServerReply};
use super::task::Task;

/// The least budget above none that is tried where nobody says which.
const FIRST: Tokens = Tokens(16);
/// By then a server goes by what it was answered last.
const LEARNED: Duration = Duration::from_millis(200);
/// Once no more thoughts than this are cut, a larger budget would change nothing.
const CUT_MAX: f64 = 0.02;
/// A call may cost so many times its first reservation; an answer that grows beyond that is asked for once more.
const ROOM: u64 = 2;

/// What is measured.
pub(super) struct CurvePlan {
    pub(super) tasks: Vec<Task>,
    /// The budgets; where there are none, 0 and doubling until hardly a thought is cut.
    pub(super) budgets: Vec<Tokens>,
    pub(super) thinking_max: Tokens,
    pub(super) samples: u32,
    pub(super) at_once: usize,
    /// The most that all of it may cost, where it costs something.
    pub(super) money_max: Option<Money>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeasureEnd {
    Whole,
    /// Another answer might have cost more than was left.
    OutOfMoney,
}

/// Why it could not go on. What was answered until then is kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum MeasureError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("the journal cannot be used")]
    Journal(#[from] CurveJournalError),
}

/// One call on its way, and what came of it.
struct CallResult {
    id: AnswerId,
    limit: Option<Money>,
    reply: Result<ServerReply, ServerError>,
    /// Of an answer, whether it is right; nothing where it could not be judged.
    right: Option<bool>,
}

/// Measures what is missing.
pub(super) async fn measure(
    plan: &CurvePlan,
    server: &CurveServer,
    journal: &mut CurveJournal,
) -> Result<MeasureEnd, MeasureError> {
    let mut budget = plan.budgets.first().copied().unwrap_or(Tokens::ZERO);
    loop {
        let ids = plan.tasks.iter().flat_map(|task| {
            (0..plan.samples).map(move |sample| AnswerId { task: task.key.clone(), budget, sample })
        });
        let missing = journal.missing(ids);
        if !missing.is_empty() {
            print_line(&format!("{budget} tokens of thought: {} answers to go", missing.len()));
        }
        if measure_budget(plan, server, journal, missing).await? == MeasureEnd::OutOfMoney {
            return Ok(MeasureEnd::OutOfMoney);
        }
        loop {
            match next_budget(plan, journal, budget) {
                Some(next) => budget = next,
                None => return Ok(MeasureEnd::Whole),
            }
            if is_thought(plan, server, budget).await? {
                break;
            }
        }
    }
}

/// False for a budget that is less than the model's provider takes, under which nothing would be thought.
async fn is_thought(plan: &CurvePlan, server: &CurveServer, budget: Tokens) -> Result<bool, ServerError> {
    match plan.tasks.first() {
        Some(task) if plan.budgets.is_empty() => {
            if server.quote(task, budget).await?.thinking > Tokens::ZERO {
                return Ok(true);
            }
            // The last answers may tell that there is room for a thought, once they are learned.
            sleep(LEARNED).await;
            Ok(server.quote(task, budget).await?.thinking > Tokens::ZERO)
        }
        _ => Ok(true),
    }
}

fn next_budget(plan: &CurvePlan, journal: &CurveJournal, budget: Tokens) -> Option<Tokens> {
    if !plan.budgets.is_empty() {
        return plan.budgets.iter().copied().find(|next| *next > budget);
    }
    let under = || journal.answers().iter().filter(|(id, _)| id.budget == budget);
    let cut = under().filter(|(_, answer)| answer.is_cut).count() as u64;
    let answers = under().count() as u64;
    let is_enough = answers > 0 && Tokens(cut).as_f64() <= CUT_MAX * Tokens(answers).as_f64();
    if budget >= plan.thinking_max || (budget > Tokens::ZERO && is_enough) {
        return None;
    }
    Some((budget * 2).max(FIRST).min(plan.thinking_max))
}

/// Asks what is missing under one budget, a few at once.
async fn measure_budget(
    plan: &CurvePlan,
    server: &CurveServer,
    journal: &mut CurveJournal,
    mut missing: Vec<AnswerId>,
) -> Result<MeasureEnd, MeasureError> {
    let tasks: BTreeMap<&str, &Task> = plan.tasks.iter().map(|task| (task.key.as_str(), task)).collect();
    missing.reverse();
    let mut calls = FuturesUnordered::new();
    let mut is_short = false;
    loop {
        while calls.len() < plan.at_once && !is_short {
            let Some(id) = missing.pop() else { break };
            let Some(task) = tasks.get(id.task.as_str()).copied() else { continue };
            let Some(limit) = limit(plan, server, journal, task, &id).await? else {
                missing.push(id);
                break;
            };
            journal.asked(&id, limit.unwrap_or(Money::ZERO))?;
            calls.push(call(server, task, id, limit));
        }
        let Some(result) = calls.next().await else { break };
        let again = record(journal, result)?;
        // What one call gave back may pay for the next.
        is_short = again.is_some() && calls.is_empty();
        missing.extend(again);
    }
    Ok(if missing.is_empty() { MeasureEnd::Whole } else { MeasureEnd::OutOfMoney })
}

/// What a call may cost: nothing where it is free, and `None` where less is left than its first reservation takes.
async fn limit(
    plan: &CurvePlan,
    server: &CurveServer,
    journal: &CurveJournal,
    task: &Task,
    id: &AnswerId,
) -> Result<Option<Option<Money>>, ServerError> {
    let Some(most) = plan.money_max else { return Ok(Some(None)) };
    let worst = server.quote(task, id.budget).await?.worst;
    let left = most.saturating_sub(journal.spent_at_most());
    Ok((left >= worst && left > Money::ZERO).then(|| Some(left.min(worst * ROOM))))
}

async fn call(server: &CurveServer, task: &Task, id: AnswerId, limit: Option<Money>) -> CallResult {
    let reply = server.ask(task, id.budget, limit).await;
    let right = match &reply {
        Ok(ServerReply::Answered(answer)) => task.is_right(&answer.text).await.ok(),
        Ok(ServerReply::TooDear) | Err(_) => None,
    };
    CallResult { id, limit, reply, right }
}

/// Writes down what came of a call; what is to be asked once more comes back.
fn record(journal: &mut CurveJournal, result: CallResult) -> Result<Option<AnswerId>, MeasureError> {
    let CallResult { id, limit, reply, right } = result;
    let answer: ModelAnswer = match reply {
        Ok(ServerReply::Answered(answer)) => answer,
        Ok(ServerReply::TooDear) => {
            journal.lost(&id, Money::ZERO)?;
            return Ok(Some(id));
        }
        Err(error) => return Err(error.into()),
    };
    let Some(right) = right.filter(|_| !answer.is_short_of_money) else {
        journal.lost(&id, answer.cost)?;
        if answer.is_short_of_money {
            print_line(&format!(
                "an answer was not done at {} dollars and is left out",
                limit.unwrap_or_default()
            ));
        } else {
            print_line("an answer could not be checked and is left out");
        }
        return Ok(None);
    };
    let ModelAnswer { thought, is_cut, solution, cost, .. } = answer;
    journal.answered(&id, JudgedAnswer { right, thought, is_cut, solution, cost })?;
    Ok(None)
}
