//! `stint plan "question"`: asks the running server what it would do with a question, and prints the offers as a table.
//!
//! The server is asked rather than the configuration read, since only it knows queues, speeds, what was learned and what
//! is left.

mod explanation;
mod sweep;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::config;

use super::local_listener::server_client;
use super::output::{VerbResult, align_columns, print_line};
use super::server_call::{KEY, ServerCallError};

pub(super) use sweep::short as short_dollars;

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is asked, and within which budget.
#[derive(Debug, Args)]
pub(super) struct PlanOptions {
    /// The question.
    question: String,
    /// A model, or a route.
    #[arg(long, visible_alias = "route", default_value = "auto")]
    model: String,
    /// Thinking tokens, rather than what the plan decides.
    #[arg(long, value_name = "TOKENS")]
    thinking: Option<u64>,
    /// Solution tokens.
    #[arg(long, value_name = "TOKENS")]
    solution: Option<u64>,
    /// The most it may cost, in dollars.
    #[arg(long, value_name = "USD")]
    cost: Option<String>,
    /// How soon the answer must be there: milliseconds, or a time like 2s.
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    deadline: Option<u64>,
    /// A word like low or high, or a share of the model's usual thinking.
    #[arg(long)]
    effort: Option<String>,
    /// From 0, the cheapest that is good enough, to 1, the best regardless.
    #[arg(long)]
    preference: Option<f64>,
    /// The server's address, if it is not the one in this configuration.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Show all offers, also those that cost more than another and are no better.
    #[arg(long)]
    all: bool,
    /// Show what would be chosen at each worth of a right answer.
    #[arg(long, value_name = "WHAT", value_parser = ["worth"])]
    sweep: Option<String>,
    /// Show the evidence: what was found in the question, and what is known and predicted of each model.
    #[arg(long)]
    explain: bool,
    /// Print the server's answer as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn plan(file: Option<&Path>, options: &PlanOptions) -> VerbResult {
    let settings = config::load_offline(file, &config::environment)?;
    let (client, base) = server_client(&settings, options.url.as_deref(), TIMEOUT)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let quote = runtime.block_on(request_plan(&client, &base, options))?;
    if options.json {
        print_line(&format!("{quote:#}"));
        return Ok(ExitCode::SUCCESS);
    }
    if options.explain {
        print_line(&explanation::tables(&quote));
    }
    match options.sweep {
        Some(_) => print_line(sweep::table(&quote["sweep"]).trim_end()),
        None => print_line(table(&quote, options.all).trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a plan is asked for, with what is wanted beside it.
fn address(base: &str, options: &PlanOptions) -> String {
    let sweep = options.sweep.as_ref().map(|what| format!("sweep={what}"));
    let explain = options.explain.then(|| "explain=true".to_owned());
    let wanted: Vec<String> = sweep.into_iter().chain(explain).collect();
    let query = if wanted.is_empty() { String::new() } else { format!("?{}", wanted.join("&")) };
    format!("{}/v1/plan{query}", base.trim_end_matches('/'))
}

async fn request_plan(
    client: &reqwest::Client,
    base: &str,
    options: &PlanOptions,
) -> Result<Value, ServerCallError> {
    let unreachable = |error| ServerCallError::Unreachable(base.to_owned(), error);
    let mut request = client.post(address(base, options));
    request = request.header("content-type", "application/json").body(body(options).to_string());
    let key = config::environment(KEY);
    if let Some(key) = &key {
        request = request.bearer_auth(key);
    }
    let answer = request.send().await.map_err(unreachable)?;
    let (status, text) = (answer.status(), answer.text().await.map_err(ServerCallError::BrokenOff)?);
    if !status.is_success() {
        return Err(ServerCallError::of_answer(base, status.as_u16(), key.is_some(), &text));
    }
    serde_json::from_str(&text).map_err(|_| ServerCallError::InvalidResponse(base.to_owned()))
}

/// A time in milliseconds, where no unit says otherwise.
fn milliseconds(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => text.strip_suffix('s').map_or((text, 1.0), |number| (number, 1000.0)),
    };
    let number: f64 = number.trim().parse().unwrap_or(f64::NAN);
    let wrong = || "write milliseconds like 500, or a time like 500ms or 2s".to_owned();
    let time = Duration::try_from_secs_f64(number * factor / 1000.0).map_err(|_| wrong())?;
    u64::try_from(time.as_millis()).ok().filter(|time| *time > 0).ok_or_else(wrong)
}

fn body(options: &PlanOptions) -> Value {
    let share = options.effort.as_ref().and_then(|effort| effort.parse::<f64>().ok());
    let word = options.effort.clone().filter(|_| share.is_none());
    let budget = [
        ("thinking_tokens", options.thinking.map(Value::from)),
        ("solution_tokens", options.solution.map(Value::from)),
        ("cost_usd", options.cost.clone().map(Value::from)),
        ("deadline_ms", options.deadline.map(Value::from)),
        ("effort", share.map(Value::from)),
        ("preference", options.preference.map(Value::from)),
    ];
    let stated = budget.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut body = json!({
        "model": options.model,
        "messages": [{ "role": "user", "content": options.question }],
        "budget": stated.collect::<serde_json::Map<_, _>>(),
    });
    if let Some(word) = word {
        body["reasoning_effort"] = word.into();
    }
    body
}

/// The offers, the chosen one marked, and why.
fn table(quote: &Value, all: bool) -> String {
    let head =
        ["", "model", "thinking", "solution", "samples", "success", "USD", "at most", "seconds", "value USD"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let offers = quote["offers"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, offer) in offers.iter().enumerate() {
        let chosen = quote["chosen"] == at;
        if all || chosen || !is_dominated(offer, offers) {
            rows.push(row(offer, chosen));
        }
    }
    let is_unmeasured = offers.iter().any(|offer| offer["seconds_guessed"] == true);
    let left_out = offers.len() + 1 - rows.len();
    let mut shown = align_columns(&rows, 2) + "\n";
    if left_out > 0 {
        shown += &format!("({left_out} more cost more than another and reach no more; --all shows them)\n");
    }
    if is_unmeasured {
        shown += "(~: its speed is not measured yet, so this is a guess, and no request is refused by it)\n";
    }
    for refused in quote["refused"].as_array().into_iter().flatten() {
        shown += &format!("not {}: {}\n", text(&refused["model"]), text(&refused["message"]));
    }
    shown + "\n" + &text(&quote["why"]) + "\n"
}

fn row(offer: &Value, chosen: bool) -> Vec<String> {
    let model = match offer["escalates_to"]["model"].as_str() {
        Some(second) => format!("{}, then {second}", text(&offer["model"])),
        None => text(&offer["model"]),
    };
    let number = |name: &str, decimals: usize| format!("{:.decimals$}", offer[name].as_f64().unwrap_or(0.0));
    let percent = format!("{:.1} %", offer["success"].as_f64().unwrap_or(0.0) * 100.0);
    vec![
        if chosen { "→" } else { "" }.to_owned(),
        model,
        text(&offer["thinking_tokens"]),
        text(&offer["solution_tokens"]),
        text(&offer["samples"]),
        percent,
        text(&offer["cost_usd"]),
        text(&offer["worst_case_usd"]),
        if offer["seconds_guessed"] == true { "~" } else { "" }.to_owned() + &number("seconds", 2),
        number("value_usd", 6),
    ]
}

/// Whether another offer costs and takes no more, and succeeds more often; of equals the first stays.
fn is_dominated(offer: &Value, offers: &[Value]) -> bool {
    let figures = |offer: &Value| {
        let dollars = offer["cost_usd"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0.0);
        (offer["success"].as_f64().unwrap_or(0.0), dollars, offer["seconds"].as_f64().unwrap_or(0.0))
    };
    let (success, dollars, seconds): (f64, f64, f64) = figures(offer);
    offers
        .iter()
        .map(figures)
        .any(|(more, less, sooner)| more > success && less <= dollars && sooner <= seconds)
}

/// A text as it is, another value as JSON writes it.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_milliseconds_unless_it_says_otherwise() {
        assert_eq!(
            [milliseconds("500"), milliseconds("500ms"), milliseconds("0.5s")],
            [Ok(500), Ok(500), Ok(500)]
        );
        for wrong in ["soon", "-1", "0", "1h", ""] {
            assert!(milliseconds(wrong).unwrap_err().contains("2s"), "{wrong}");
        }
    }

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: PlanOptions,
    }

    #[test]
    fn the_server_is_asked_for_no_more_than_is_wanted() {
        let asked = |line: &str| {
            let line = <Line as clap::Parser>::try_parse_from(line.split(' ')).unwrap();
            address("http://here/", &line.options)
        };
        assert_eq!(asked("plan Why?"), "http://here/v1/plan");
        assert_eq!(asked("plan Why? --route r --explain"), "http://here/v1/plan?explain=true");
        let both = "http://here/v1/plan?sweep=worth&explain=true";
        assert_eq!(asked("plan Why? --sweep worth --explain"), both);
    }

    #[test]
    fn the_seconds_of_an_offer_of_unmeasured_speed_are_marked_as_guessed() {
        let offer = |guessed: bool| {
            json!({ "model": "m", "thinking_tokens": 1, "solution_tokens": 1, "samples": 1, "success": 0.5,
                    "cost_usd": "0.1", "worst_case_usd": "0.2", "seconds": 0.5,
                    "seconds_guessed": guessed, "value_usd": 0.3 })
        };
        let shown = |guessed| table(&json!({ "offers": [offer(guessed)], "chosen": 0, "why": "so" }), false);
        assert!(shown(true).contains("~0.50") && shown(true).contains("not measured yet"), "{}", shown(true));
        assert!(shown(false).contains(" 0.50") && !shown(false).contains("measured"), "{}", shown(false));
    }
}
