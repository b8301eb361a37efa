//! `output_config`: how deep the model thinks, the form of its answer, and what it is told of its whole task.

use serde_json::{Map, Value, json};

use crate::remote::caller_options::insert_present;
use stint_types::chat::{Request, TaskBudget};
use stint_types::units::Tokens;

use super::Settings;
use super::answer_form::ClaudeForm;

/// Beyond this nobody is told anything by a number: what is free pays for any.
const TASK_BUDGET_MAX: Tokens = Tokens(100_000_000);

/// The member, where there is anything to say.
pub(super) fn write(
    settings: &Settings,
    request: &Request,
    effort: Option<String>,
    form: &ClaudeForm,
) -> Option<Value> {
    let mut output = Map::new();
    let task_budget = task_budget(settings, request);
    insert_present(&mut output, [("effort", effort.map(Value::String)), ("task_budget", task_budget)]);
    if let ClaudeForm::Held(schema, _) = form {
        output.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    (!output.is_empty()).then_some(Value::Object(output))
}

/// What the model is told of its whole task: what the caller says, or what the run's money pays for if all of it is written. It is
/// the same in every request of a run, since the provider counts down by itself and another number is another prompt for its cache.
fn task_budget(settings: &Settings, request: &Request) -> Option<Value> {
    let least = settings.rules.task_budget_min?;
    let of_money = || {
        let total = settings.price_output?.affords(request.run_cost?);
        Some(TaskBudget { total: total.min(TASK_BUDGET_MAX), remaining: None })
    };
    let TaskBudget { total, remaining } =
        request.budget.task.or_else(of_money).filter(|task| task.total >= least)?;
    let mut told = Map::new();
    insert_present(
        &mut told,
        [
            ("type", Some(json!("tokens"))),
            ("total", Some(json!(total))),
            ("remaining", remaining.map(|remaining| json!(remaining))),
        ],
    );
    Some(Value::Object(told))
}
