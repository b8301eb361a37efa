//! The panels of the dashboard: some chosen ones first, then one for every series, by subject.

#![expect(clippy::too_many_lines, reason = "tables")]

use stint_types::metrics::{SeriesDescription, SeriesKind, SeriesUnit};

use super::series;

/// Which servers are shown.
const CHOSEN: &str = "instance=~\"$instance\"";

/// What one panel shows.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) about: String,
    /// Each with what its lines are called.
    pub(super) queries: Vec<(String, String)>,
    pub(super) unit: &'static str,
}

/// Panels under a heading.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: Vec<Panel>,
}

/// All rows, the chosen panels first.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![Row { title: "At a glance", panels: at_a_glance() }];
    for series in series() {
        if rows.last().is_none_or(|row| row.title != series.subject) {
            rows.push(Row { title: series.subject, panels: Vec::new() });
        }
        rows.last_mut().unwrap().panels.push(of_series(&series));
    }
    rows
}

fn panel(title: &str, about: &str, unit: &'static str, queries: &[(&str, &str)]) -> Panel {
    let query =
        |(expression, legend): &(&str, &str)| (expression.replace("CHOSEN", CHOSEN), (*legend).to_owned());
    Panel { title: title.into(), about: about.into(), unit, queries: queries.iter().map(query).collect() }
}

fn quantile(share: &str, by: &str, series: &str) -> String {
    format!(
        "histogram_quantile({share}, sum by ({by}le) (rate({series}_bucket{{CHOSEN}}[$__rate_interval])))"
    )
}

fn at_a_glance() -> Vec<Panel> {
    let rate = |by: &str, series: &str| format!("sum by ({by}) (rate({series}{{CHOSEN}}[$__rate_interval]))");
    let one = |title, about, unit, by: &str, series| {
        panel(title, about, unit, &[(&rate(by, series), &*format!("{{{{{by}}}}}"))])
    };
    let p = |title, about, series| {
        let (usual, worst) = (quantile("0.5", "", series), quantile("0.99", "", series));
        panel(title, about, "s", &[(&usual, "half"), (&worst, "99 %")])
    };
    let mean = |series: &str| {
        let part = |end| format!("sum(rate({series}_{end}{{CHOSEN}}[$__rate_interval]))");
        format!("{} / {}", part("sum"), part("count"))
    };
    let money = "sum by (model) (rate(stint_money_spent_usd_total{CHOSEN}[$__rate_interval])) * 3600";
    let (planned, used) = (mean("stint_thinking_tokens_planned"), mean("stint_thinking_tokens_used"));
    vec![
        one("Requests", "By how they ended.", "reqps", "outcome", "stint_requests_total"),
        one("Answers by status", "Of every endpoint.", "reqps", "class", "stint_http_responses_total"),
        one("Refusals", "By the limit that refused.", "reqps", "limit", "stint_refusals_total"),
        p("Time that is ours", "To decide, to reserve and to settle.", "stint_overhead_seconds"),
        p("First token", "Of thought or answer.", "stint_first_token_seconds"),
        panel("Money spent", "Dollars an hour, by model.", "currencyUSD", &[(money, "{{model}}")]),
        panel(
            "Budgets left",
            "Of each declared tenant's tightest limit.",
            "percentunit",
            &[("stint_budget_left_ratio{CHOSEN}", "{{tenant}}")],
        ),
        panel(
            "Thinking",
            "Budget given and tokens used, on average.",
            "none",
            &[(&planned, "planned"), (&used, "used")],
        ),
        one("How thoughts ended", "Cut is at the budget.", "ops", "ended", "stint_thinking_ended_total"),
        one(
            "What ended answers",
            "Stop and tool_calls are the model's own.",
            "ops",
            "ended",
            "stint_solution_ended_total",
        ),
        panel(
            "Targets",
            "1 where a target may be asked.",
            "none",
            &[("stint_backend_state{CHOSEN}", "{{model}} {{target}}")],
        ),
        panel(
            "Calls under way",
            "And how many wait.",
            "none",
            &[
                ("sum by (model) (stint_in_flight{CHOSEN})", "{{model}}"),
                ("sum by (model) (stint_queue_depth{CHOSEN})", "{{model}} waits"),
            ],
        ),
        panel(
            "Ledger",
            "Entries that wait for their commit.",
            "none",
            &[("stint_ledger_pending{CHOSEN}", "pending"), ("stint_ledger_stalled{CHOSEN}", "stalled")],
        ),
        panel(
            "Configuration",
            "0 where the last one was refused.",
            "none",
            &[("stint_config_state{CHOSEN}", "{{instance}}")],
        ),
        panel("Memory", "Resident.", "bytes", &[("process_resident_memory_bytes{CHOSEN}", "{{instance}}")]),
    ]
}

/// The panel that a series has by its kind.
fn of_series(series: &SeriesDescription) -> Panel {
    let (name, by) = (&series.name, series.labels.join(", "));
    let legend: Vec<String> = series.labels.iter().map(|label| format!("{{{{{label}}}}}")).collect();
    let legend = if legend.is_empty() { "{{instance}}".to_owned() } else { legend.join(" ") };
    let query = match series.kind {
        SeriesKind::Counter if by.is_empty() => format!("rate({name}{{CHOSEN}}[$__rate_interval])"),
        SeriesKind::Counter => format!("sum by ({by}) (rate({name}{{CHOSEN}}[$__rate_interval]))"),
        SeriesKind::Gauge => format!("{name}{{CHOSEN}}"),
        SeriesKind::Histogram if by.is_empty() => quantile("0.95", "", name),
        SeriesKind::Histogram => quantile("0.95", &format!("{by}, "), name),
    };
    panel(name, &series.help, unit(series), &[(&query, &legend)])
}

/// Grafana's word for a unit.
fn unit(series: &SeriesDescription) -> &'static str {
    let is_rate = series.kind == SeriesKind::Counter;
    match series.unit() {
        SeriesUnit::Seconds if is_rate => "percentunit",
        SeriesUnit::Seconds => "s",
        SeriesUnit::Timestamp => "dateTimeAsIso",
        SeriesUnit::Dollars | SeriesUnit::DollarsPerSecond => "currencyUSD",
        SeriesUnit::Bytes => "bytes",
        SeriesUnit::Ratio => "percentunit",
        SeriesUnit::Tokens | SeriesUnit::Count if is_rate => "ops",
        SeriesUnit::Tokens | SeriesUnit::Count => "none",
    }
}
