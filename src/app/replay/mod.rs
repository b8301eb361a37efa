//! `stint replay`: how another policy would have done, by the decision log.

mod read;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::config;
use stint_lab::replay::{ReplayPolicy, ReplayReport, evaluate};

use super::output::{VerbResult, print_line};

/// Which log, and which policies.
#[derive(Debug, Args)]
pub(super) struct ReplayOptions {
    /// The decision logs: several, if several gateways wrote them or they were rotated.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// A policy to judge: the name of a route in the configuration, `model=NAME`, `cheapest`, `best` or `even`. Each of the
    /// configuration's routes, and the last three, where none is named.
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,
    /// Only requests to this route or model.
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Why nothing is judged.
#[derive(Debug, thiserror::Error)]
enum ReplayError {
    #[error(
        "there is no policy {0:?}; name a route of the configuration, or write model=NAME, cheapest, best or even"
    )]
    NoPolicy(String),
    #[error("the log has no whole request{0}; decisions are logged where [learn] is enabled and has a log")]
    Empty(String),
}

/// Runs the verb.
pub(super) fn replay(config: Option<&Path>, options: &ReplayOptions) -> VerbResult {
    print_line(&replay_log(config, options)?);
    Ok(ExitCode::SUCCESS)
}

fn replay_log(config: Option<&Path>, options: &ReplayOptions) -> Result<String, Box<dyn std::error::Error>> {
    let settings = config::load_offline(config, &config::environment)?;
    let policies = policies(&settings.catalog.routes, &options.policies)?;
    let log = read::read(&options.logs)?;
    let of_route = |name: &str| options.route.as_deref().is_none_or(|wanted| wanted == name);
    let logged: Vec<_> = log.requests.into_iter().filter(|one| of_route(&one.decision.route)).collect();
    if logged.is_empty() {
        let of = options.route.as_ref().map_or(String::new(), |name| format!(" to {name:?}"));
        return Err(ReplayError::Empty(of).into());
    }
    let reports: Vec<(String, ReplayReport)> =
        policies.into_iter().map(|(name, policy)| (name, evaluate(&logged, &policy))).collect();
    Ok(if options.json {
        table::json(&reports, log.unread_lines)
    } else {
        table::text(&reports, log.unread_lines)
    })
}

type RouteMap = std::collections::BTreeMap<std::sync::Arc<str>, stint_types::catalog::Route>;

fn policies(routes: &RouteMap, named: &[String]) -> Result<Vec<(String, ReplayPolicy)>, ReplayError> {
    if named.is_empty() {
        let of_route = |name: &std::sync::Arc<str>| name.to_string();
        let names = routes.keys().map(of_route).chain(["cheapest", "best", "even"].map(str::to_owned));
        return names.map(|name| Ok((name.clone(), policy(routes, &name)?))).collect();
    }
    named.iter().map(|name| Ok((name.clone(), policy(routes, name)?))).collect()
}

fn policy(routes: &RouteMap, name: &str) -> Result<ReplayPolicy, ReplayError> {
    if let Some(route) = routes.get(name) {
        return Ok(ReplayPolicy::Route(Box::new(route.clone())));
    }
    match (name, name.strip_prefix("model=")) {
        (_, Some(model)) => Ok(ReplayPolicy::Model(model.into())),
        ("cheapest", _) => Ok(ReplayPolicy::Cheapest),
        ("best", _) => Ok(ReplayPolicy::Best),
        ("even", _) => Ok(ReplayPolicy::Even),
        _ => Err(ReplayError::NoPolicy(name.to_owned())),
    }
}
