//! The alerts, each with series that must raise it and series that must not.

#![expect(clippy::too_many_lines, reason = "tables")]

/// When somebody is told.
pub(super) struct Alert {
    pub(super) name: &'static str,
    pub(super) expression: &'static str,
    /// How long it must hold.
    pub(super) hold: &'static str,
    pub(super) severity: Severity,
    pub(super) summary: &'static str,
    /// What to do.
    pub(super) remedy: &'static str,
    /// The labels that its result has beside the severity.
    pub(super) labels: &'static [(&'static str, &'static str)],
    /// Series and their values each minute that raise it within the hour.
    pub(super) fires: &'static [(&'static str, &'static str)],
    /// And those that do not.
    pub(super) quiet: &'static [(&'static str, &'static str)],
}

/// How soon somebody is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// Now.
    Page,
    /// In working hours.
    Ticket,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Page => "page",
            Ticket => "ticket",
        }
    }
}

use Severity::{Page, Ticket};

const HERE: &[(&str, &str)] = &[("instance", "a")];
const MODEL: &[(&str, &str)] = &[("instance", "a"), ("model", "m")];
const TARGET: &[(&str, &str)] = &[("instance", "a"), ("model", "m"), ("target", "t")];

/// A count that stands, and one that rises once within the last quarter of an hour of the hour.
const STANDS: &str = "3+0x60";
const RISES: &str = "0+0x50 1+0x10";

/// All alerts.
pub(super) fn alerts() -> Vec<Alert> {
    [service(), money(), upstreams(), engine_and_learning()].into_iter().flatten().collect()
}

fn service() -> Vec<Alert> {
    vec![
        Alert {
            name: "StintDown",
            expression: "up{job=\"stint\"} == 0",
            hold: "1m",
            severity: Page,
            summary: "{{ $labels.instance }} does not answer",
            remedy: "See whether the process runs and what its log says last; stint health asks it from its own machine.",
            labels: &[("instance", "a"), ("job", "stint")],
            fires: &[("up{job=\"stint\", instance=\"a\"}", "1+0x50 0+0x10")],
            quiet: &[("up{job=\"stint\", instance=\"a\"}", "1+0x60"), ("up{job=\"other\"}", "0+0x60")],
        },
        // Where all targets have left the discovery, there is no `up` that could be 0.
        Alert {
            name: "StintGone",
            expression: "absent(up{job=\"stint\"})",
            hold: "5m",
            severity: Page,
            summary: "Prometheus has no gateway to ask: the job stint has no target",
            remedy: "See whether any gateway runs, and what the discovery of the job stint finds (/targets of Prometheus).",
            labels: &[("job", "stint")],
            fires: &[("up{job=\"stint\", instance=\"a\"}", "1+0x50 stale"), ("up{job=\"other\"}", "1+0x60")],
            quiet: &[("up{job=\"stint\", instance=\"a\"}", "0+0x60")],
        },
        Alert {
            name: "StintLedgerStalled",
            expression: "stint_ledger_stalled == 1",
            hold: "1m",
            severity: Page,
            summary: "{{ $labels.instance }} can record nothing, and refuses new requests",
            remedy: "/readyz and the log say since when and why: look at the disk or at PostgreSQL.",
            labels: HERE,
            fires: &[("stint_ledger_stalled{instance=\"a\"}", "0+0x50 1+0x10")],
            quiet: &[("stint_ledger_stalled{instance=\"a\"}", "0+0x60")],
        },
        Alert {
            name: "StintConfigRefused",
            expression: "stint_config_state == 0",
            hold: "0m",
            severity: Ticket,
            summary: "The last configuration of {{ $labels.instance }} was refused; the previous one is in force",
            remedy: "The log has every mistake; stint check --config FILE shows them again.",
            labels: HERE,
            fires: &[("stint_config_state{instance=\"a\"}", "1+0x50 0+0x10")],
            quiet: &[("stint_config_state{instance=\"a\"}", "1+0x60")],
        },
        Alert {
            name: "StintCertificateExpires",
            expression: "stint_certificate_expiry_seconds - time() < 14 * 24 * 3600",
            hold: "0m",
            severity: Ticket,
            summary: "The certificate of the listener {{ $labels.listener }} of {{ $labels.instance }} expires within two weeks, or has expired",
            remedy: "See why it was not renewed. A new one in its file is taken within seconds, without a reload.",
            labels: &[("instance", "a"), ("listener", "api")],
            fires: &[("stint_certificate_expiry_seconds{instance=\"a\", listener=\"api\"}", "1209600+0x60")],
            quiet: &[
                ("stint_certificate_expiry_seconds{instance=\"a\", listener=\"api\"}", "1299600+0x60"),
                ("stint_certificate_expiry_seconds{instance=\"a\", listener=\"admin\"}", "7776000+0x60"),
            ],
        },
        Alert {
            name: "StintIssuerKeysOld",
            expression: "sum by (instance, issuer) (increase(stint_issuer_key_fetches_total{outcome=\"failed\"}[15m])) > 0 \
                         unless sum by (instance, issuer) (increase(stint_issuer_key_fetches_total{outcome=\"fetched\"}[15m])) > 0",
            hold: "5m",
            severity: Ticket,
            summary: "{{ $labels.instance }} cannot fetch the keys of the issuer of {{ $labels.issuer }}, and those it has grow old",
            remedy: "Ask the issuer's jwks_url from that machine. When refresh and keep of [[issuer]] are over, its tokens get 503.",
            labels: &[("instance", "a"), ("issuer", "staff")],
            fires: &[
                (
                    "stint_issuer_key_fetches_total{instance=\"a\", issuer=\"staff\", outcome=\"failed\"}",
                    "0+0x30 1+1x30",
                ),
                (
                    "stint_issuer_key_fetches_total{instance=\"a\", issuer=\"staff\", outcome=\"fetched\"}",
                    "1+0x60",
                ),
                (
                    "stint_issuer_key_fetches_total{instance=\"a\", issuer=\"other\", outcome=\"fetched\"}",
                    "0+1x60",
                ),
            ],
            quiet: &[
                (
                    "stint_issuer_key_fetches_total{instance=\"a\", issuer=\"staff\", outcome=\"failed\"}",
                    "0+1x60",
                ),
                (
                    "stint_issuer_key_fetches_total{instance=\"a\", issuer=\"staff\", outcome=\"fetched\"}",
                    "0+1x60",
                ),
                (
                    "stint_issuer_key_fetches_total{instance=\"a\", issuer=\"other\", outcome=\"failed\"}",
                    "0+0x60",
                ),
            ],
        },
        Alert {
            name: "StintServerErrors",
            expression: "sum by (instance) (rate(stint_http_responses_total{class=\"5xx\"}[5m])) / \
                         sum by (instance) (rate(stint_http_responses_total[5m])) > 0.05",
            hold: "5m",
            severity: Page,
            summary: "More than one answer in twenty of {{ $labels.instance }} is an error of ours or of an upstream",
            remedy: "stint_attempt_failures_total says whose fault it is; the log has each of them.",
            labels: HERE,
            fires: &[
                ("stint_http_responses_total{instance=\"a\", class=\"2xx\"}", "0+9x60"),
                ("stint_http_responses_total{instance=\"a\", class=\"5xx\"}", "0+1x60"),
            ],
            quiet: &[
                ("stint_http_responses_total{instance=\"a\", class=\"2xx\"}", "0+99x60"),
                ("stint_http_responses_total{instance=\"a\", class=\"5xx\"}", "0+1x60"),
            ],
        },
        Alert {
            name: "StintOverheadHigh",
            expression: "histogram_quantile(0.99, sum by (instance, le) (rate(stint_overhead_seconds_bucket[5m]))) > 0.1",
            hold: "10m",
            severity: Ticket,
            summary: "One request in a hundred waits longer than 0.1 s for {{ $labels.instance }} itself",
            remedy: "stint_ledger_commit_seconds tells a slow disk, stint_event_loop_lag_seconds_total a busy processor.",
            labels: HERE,
            fires: &[
                ("stint_overhead_seconds_bucket{instance=\"a\", le=\"0.1\"}", "0+90x60"),
                ("stint_overhead_seconds_bucket{instance=\"a\", le=\"1\"}", "0+100x60"),
                ("stint_overhead_seconds_bucket{instance=\"a\", le=\"+Inf\"}", "0+100x60"),
            ],
            quiet: &[
                ("stint_overhead_seconds_bucket{instance=\"a\", le=\"0.01\"}", "0+100x60"),
                ("stint_overhead_seconds_bucket{instance=\"a\", le=\"0.1\"}", "0+100x60"),
                ("stint_overhead_seconds_bucket{instance=\"a\", le=\"+Inf\"}", "0+100x60"),
            ],
        },
        Alert {
            name: "StintCallersTurnedAway",
            expression: "sum by (instance) (increase(stint_connections_turned_away_total{why=~\"full|address|account\"}[15m])) > 0",
            hold: "0m",
            severity: Ticket,
            summary: "{{ $labels.instance }} turned callers away for lack of a place",
            remedy: "Raise connections_max or account_requests_max of [server], or look who takes so many.",
            labels: HERE,
            fires: &[("stint_connections_turned_away_total{instance=\"a\", why=\"full\"}", RISES)],
            quiet: &[
                ("stint_connections_turned_away_total{instance=\"a\", why=\"full\"}", STANDS),
                ("stint_connections_turned_away_total{instance=\"a\", why=\"idle\"}", RISES),
            ],
        },
        Alert {
            name: "StintFilesNearlyUsedUp",
            expression: "process_open_fds{job=\"stint\"} / process_max_fds{job=\"stint\"} > 0.8",
            hold: "5m",
            severity: Ticket,
            summary: "{{ $labels.instance }} has four fifths of its file descriptors open",
            remedy: "Raise its limit (LimitNOFILE of systemd), or lower connections_max of [server].",
            labels: &[("instance", "a"), ("job", "stint")],
            fires: &[
                ("process_open_fds{job=\"stint\", instance=\"a\"}", "900+0x60"),
                ("process_max_fds{job=\"stint\", instance=\"a\"}", "1000+0x60"),
            ],
            quiet: &[
                ("process_open_fds{job=\"stint\", instance=\"a\"}", "100+0x60"),
                ("process_max_fds{job=\"stint\", instance=\"a\"}", "1000+0x60"),
            ],
        },
    ]
}

fn money() -> Vec<Alert> {
    vec![
        Alert {
            name: "StintAnswersEndedByMoney",
            expression: "sum by (instance, model) (increase(stint_solution_ended_total{ended=\"money\"}[15m])) > 0",
            hold: "0m",
            severity: Ticket,
            summary: "Answers of {{ $labels.model }} were cut, since a limit paid for no more",
            remedy: "stint usage and /admin/accounts say whose limit it is: raise it, or let it hold.",
            labels: MODEL,
            fires: &[("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"money\"}", RISES)],
            quiet: &[
                ("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"money\"}", STANDS),
                ("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"stop\"}", "0+5x60"),
            ],
        },
        Alert {
            name: "StintAnswersEndedByLedger",
            expression: "sum by (instance, model) (increase(stint_solution_ended_total{ended=\"ledger\"}[15m])) > 0",
            hold: "0m",
            severity: Page,
            summary: "Answers of {{ $labels.model }} were cut, since the ledger did not say whether there is more money",
            remedy: "Look at the ledger's database: stint_ledger_commit_seconds, stint_ledger_pending, and the log.",
            labels: MODEL,
            fires: &[("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"ledger\"}", RISES)],
            quiet: &[("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"ledger\"}", STANDS)],
        },
        Alert {
            name: "StintMoneyOverrun",
            expression: "sum by (instance, model) (increase(stint_money_overrun_usd_total[15m])) > 0",
            hold: "0m",
            severity: Page,
            summary: "{{ $labels.model }} billed more than was reserved for it",
            remedy: "The log names the requests. See whether the model's prices and limits are right, and run stint probe on it.",
            labels: MODEL,
            fires: &[("stint_money_overrun_usd_total{instance=\"a\", model=\"m\"}", "0+0x50 0.01+0x10")],
            quiet: &[("stint_money_overrun_usd_total{instance=\"a\", model=\"m\"}", STANDS)],
        },
        Alert {
            name: "StintBudgetNearlySpent",
            expression: "stint_budget_left_ratio < 0.1",
            hold: "5m",
            severity: Ticket,
            summary: "{{ $labels.tenant }} has less than a tenth of its tightest limit left",
            remedy: "/v1/allowance with its key says which limit and when it resets.",
            labels: &[("instance", "a"), ("tenant", "acme")],
            fires: &[("stint_budget_left_ratio{instance=\"a\", tenant=\"acme\"}", "0.05+0x60")],
            quiet: &[("stint_budget_left_ratio{instance=\"a\", tenant=\"acme\"}", "0.5+0x60")],
        },
        Alert {
            name: "StintUsageReckoned",
            expression: "sum by (instance, model) (increase(stint_estimated_usage_total[1h])) / \
                         sum by (instance, model) (increase(stint_solution_ended_total[1h])) > 0.5",
            hold: "15m",
            severity: Ticket,
            summary: "Most of what {{ $labels.model }} uses is estimated, not reported",
            remedy: "Its upstream reports no usage: have it do so, or take its bill as approximate.",
            labels: MODEL,
            fires: &[
                ("stint_estimated_usage_total{instance=\"a\", model=\"m\"}", "0+9x60"),
                ("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"stop\"}", "0+10x60"),
            ],
            quiet: &[
                ("stint_estimated_usage_total{instance=\"a\", model=\"m\"}", "0+1x60"),
                ("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"stop\"}", "0+10x60"),
            ],
        },
    ]
}

/// A target that fails is asked again whenever its rest is over, and until somebody does so its state is 1. So the averages count,
/// and only where there were samples at their beginning: of a new gateway a single rest would be most of them.
fn upstreams() -> Vec<Alert> {
    vec![
        Alert {
            name: "StintModelUnavailable",
            expression: "max by (instance, model) (avg_over_time(stint_backend_state[3m])) < 0.5 \
                         and count by (instance, model) (stint_backend_state offset 3m) > 0",
            hold: "0m",
            severity: Page,
            summary: "No target of {{ $labels.model }} may be called",
            remedy: "stint_attempt_failures_total has the fault: overload is the upstream's 429 or 503, whose Retry-After is kept to and \
                     counts as no trip; stint_backend_trips_total has the rest. stint check --connect asks each upstream once.",
            labels: MODEL,
            fires: &[("stint_backend_state{instance=\"a\", model=\"m\", target=\"t\"}", "1+0x50 0+0x7 1 0")],
            quiet: &[
                ("stint_backend_state{instance=\"a\", model=\"m\", target=\"t\"}", "0+0x60"),
                ("stint_backend_state{instance=\"a\", model=\"m\", target=\"u\"}", "1+0x60"),
                ("stint_backend_state{instance=\"new\", model=\"m\", target=\"t\"}", "_x58 1 0 0"),
            ],
        },
        // Of a model that is asked every few minutes most targets may be called, and none answers. An answer that ended by `none` did
        // not come, or nothing is left of it. Embeddings have no answers that end, and are `finished` requests.
        Alert {
            name: "StintModelAnswersNobody",
            expression: "sum by (instance, model) (increase(stint_attempt_failures_total{fault!~\"caller|gateway\"}[1h])) > 2 \
                         unless sum by (instance, model) (increase(stint_solution_ended_total{ended!~\"none|upstream\"}[1h])) > 0 \
                         unless sum by (instance, model) (increase(stint_requests_total{outcome=\"finished\"}[1h])) > 0",
            hold: "0m",
            severity: Page,
            summary: "{{ $labels.model }} has answered nobody for an hour, and failed more than twice",
            remedy: "stint_attempt_failures_total has the fault, and the log has each failure; stint check --connect asks each upstream once.",
            labels: MODEL,
            fires: &[
                (
                    "stint_attempt_failures_total{instance=\"a\", model=\"m\", target=\"t\", fault=\"backend\"}",
                    "0+0x40 3 3 3 6 6 6 9+0x13",
                ),
                (
                    "stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"none\"}",
                    "0+0x40 1 1 1 2 2 2 3+0x13",
                ),
                ("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"stop\"}", "7+0x60"),
                (
                    "stint_requests_total{instance=\"a\", route=\"m\", model=\"m\", outcome=\"failed\"}",
                    "0+0x40 1 1 1 2 2 2 3+0x13",
                ),
                (
                    "stint_requests_total{instance=\"a\", route=\"m\", model=\"m\", outcome=\"finished\"}",
                    "7+0x60",
                ),
            ],
            quiet: &[
                (
                    "stint_attempt_failures_total{instance=\"a\", model=\"m\", target=\"t\", fault=\"backend\"}",
                    "0+1x60",
                ),
                ("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"none\"}", "0+1x60"),
                ("stint_solution_ended_total{instance=\"a\", model=\"m\", ended=\"stop\"}", "7+0x50 8+0x10"),
                (
                    "stint_attempt_failures_total{instance=\"a\", model=\"vectors\", target=\"t\", fault=\"backend\"}",
                    "0+1x60",
                ),
                ("stint_solution_ended_total{instance=\"a\", model=\"vectors\", ended=\"stop\"}", "0+0x60"),
                (
                    "stint_requests_total{instance=\"a\", route=\"vectors\", model=\"vectors\", outcome=\"finished\"}",
                    "0+5x60",
                ),
            ],
        },
        // Where callers give up before a call may take no longer, no call has failed.
        Alert {
            name: "StintCallersHangUp",
            expression: "sum by (instance, model) (increase(stint_requests_total{outcome=\"hung_up\"}[15m])) > 9 \
                         unless sum by (instance, model) (increase(stint_requests_total{outcome=\"finished\"}[15m])) > 0",
            hold: "0m",
            severity: Page,
            summary: "The callers of {{ $labels.model }} hang up, and nobody was answered in a quarter of an hour",
            remedy: "Its upstream takes requests and says nothing: see the provider's status page, and take the model out meanwhile.",
            labels: MODEL,
            fires: &[
                (
                    "stint_requests_total{instance=\"a\", route=\"m\", model=\"m\", outcome=\"hung_up\"}",
                    "0+0x44 1+1x15",
                ),
                (
                    "stint_requests_total{instance=\"a\", route=\"m\", model=\"m\", outcome=\"finished\"}",
                    "7+0x60",
                ),
            ],
            quiet: &[
                (
                    "stint_requests_total{instance=\"a\", route=\"m\", model=\"m\", outcome=\"hung_up\"}",
                    "0+0x44 1+1x15",
                ),
                (
                    "stint_requests_total{instance=\"a\", route=\"m\", model=\"m\", outcome=\"finished\"}",
                    "7+0x55 8+0x4",
                ),
                (
                    "stint_requests_total{instance=\"a\", route=\"n\", model=\"n\", outcome=\"hung_up\"}",
                    "0+0x50 1 2 3+0x7",
                ),
            ],
        },
        Alert {
            name: "StintTargetLeftAlone",
            expression: "avg_over_time(stint_backend_state[10m]) < 0.5 and stint_backend_state offset 10m >= 0",
            hold: "0m",
            severity: Ticket,
            summary: "{{ $labels.target }} of {{ $labels.model }} is left alone most of the time: it fails again and again, or asks for long pauses",
            remedy: "stint_attempt_failures_total says whose fault its failures are; overload is its own 429, with a Retry-After or without.",
            labels: TARGET,
            fires: &[("stint_backend_state{instance=\"a\", model=\"m\", target=\"t\"}", "1+0x50 0+0x7 1 0")],
            quiet: &[
                ("stint_backend_state{instance=\"a\", model=\"m\", target=\"t\"}", "1+0x54 0+0x2 1+0x2"),
                ("stint_backend_state{instance=\"new\", model=\"m\", target=\"t\"}", "_x58 1 0 0"),
            ],
        },
        Alert {
            name: "StintCredentialRefused",
            expression: "sum by (instance, model, target) (increase(stint_backend_trips_total{cause=\"credential\"}[15m])) > 0",
            hold: "0m",
            severity: Page,
            summary: "{{ $labels.target }} of {{ $labels.model }} refuses our key or our account",
            remedy: "Renew the key, or pay the bill; a new key in a file is read by a reload.",
            labels: TARGET,
            fires: &[(
                "stint_backend_trips_total{instance=\"a\", model=\"m\", target=\"t\", cause=\"credential\"}",
                RISES,
            )],
            quiet: &[(
                "stint_backend_trips_total{instance=\"a\", model=\"m\", target=\"t\", cause=\"failures\"}",
                RISES,
            )],
        },
        Alert {
            name: "StintTargetOverruns",
            expression: "sum by (instance, model, target) (increase(stint_target_overruns_total[15m])) > 0",
            hold: "0m",
            severity: Ticket,
            summary: "{{ $labels.target }} of {{ $labels.model }} writes beyond its limit",
            remedy: "See what its server is; the log names the calls, which were disconnected.",
            labels: TARGET,
            fires: &[("stint_target_overruns_total{instance=\"a\", model=\"m\", target=\"t\"}", RISES)],
            quiet: &[("stint_target_overruns_total{instance=\"a\", model=\"m\", target=\"t\"}", STANDS)],
        },
        Alert {
            name: "StintBudgetNotBelieved",
            expression: "sum by (instance, model) (increase(stint_demotions_total[1h])) > 0",
            hold: "0m",
            severity: Ticket,
            summary: "The thinking budget of {{ $labels.model }} did not hold, and is enforced by other means now",
            remedy: "Run stint probe on it: its upstream has changed, or never had what the catalogue says.",
            labels: MODEL,
            fires: &[("stint_demotions_total{instance=\"a\", model=\"m\"}", RISES)],
            quiet: &[("stint_demotions_total{instance=\"a\", model=\"m\"}", STANDS)],
        },
        Alert {
            name: "StintShedding",
            expression: "sum by (instance, model) (increase(stint_sheds_total[5m])) > 0",
            hold: "5m",
            severity: Ticket,
            summary: "Requests for {{ $labels.model }} find no free target",
            remedy: "stint_queue_depth and stint_concurrency_limit say how full it is: add a target, or a limit for who asks most.",
            labels: MODEL,
            fires: &[("stint_sheds_total{instance=\"a\", model=\"m\", cause=\"full\"}", "0+1x60")],
            quiet: &[("stint_sheds_total{instance=\"a\", model=\"m\", cause=\"full\"}", STANDS)],
        },
    ]
}

fn engine_and_learning() -> Vec<Alert> {
    vec![
        Alert {
            name: "StintEngineDown",
            expression: "stint_engine_up == 0",
            hold: "2m",
            severity: Page,
            summary: "The local engine of {{ $labels.model }} does not run",
            remedy: "The log says why and when it is started again; where the same comes back, restart the process.",
            labels: MODEL,
            fires: &[("stint_engine_up{instance=\"a\", model=\"m\"}", "1+0x50 0+0x10")],
            quiet: &[("stint_engine_up{instance=\"a\", model=\"m\"}", "1+0x60")],
        },
        Alert {
            name: "StintModelChanged",
            expression: "sum by (instance, model) (increase(stint_model_alarms_total[1h])) > 0",
            hold: "0m",
            severity: Ticket,
            summary: "{{ $labels.model }} has changed: its answers are no longer as good, or as bad, as predicted",
            remedy: "See whether its upstream serves another version; how good it is is learned again meanwhile.",
            labels: MODEL,
            fires: &[("stint_model_alarms_total{instance=\"a\", model=\"m\"}", RISES)],
            quiet: &[("stint_model_alarms_total{instance=\"a\", model=\"m\"}", STANDS)],
        },
        Alert {
            name: "StintOutcomesDropped",
            expression: "sum by (instance, at) (increase(stint_outcomes_dropped_total[15m])) > 0",
            hold: "0m",
            severity: Ticket,
            summary: "Outcomes of {{ $labels.instance }} were dropped at the {{ $labels.at }}",
            remedy: "The database or the disk of the decision log does not keep up.",
            labels: &[("instance", "a"), ("at", "store")],
            fires: &[("stint_outcomes_dropped_total{instance=\"a\", at=\"store\"}", RISES)],
            quiet: &[("stint_outcomes_dropped_total{instance=\"a\", at=\"store\"}", STANDS)],
        },
        Alert {
            name: "StintTracesLost",
            expression: "sum by (instance, outcome) (increase(stint_traces_total{outcome=~\"dropped|failed\"}[15m])) > 0",
            hold: "15m",
            severity: Ticket,
            summary: "Traces of {{ $labels.instance }} are lost: {{ $labels.outcome }}",
            remedy: "failed: the log says what the collector answers. dropped: it is too slow; sample less, or raise queue_max.",
            labels: &[("instance", "a"), ("outcome", "failed")],
            fires: &[("stint_traces_total{instance=\"a\", outcome=\"failed\"}", "0+1x60")],
            quiet: &[
                ("stint_traces_total{instance=\"a\", outcome=\"failed\"}", STANDS),
                ("stint_traces_total{instance=\"a\", outcome=\"sent\"}", "0+1x60"),
            ],
        },
        Alert {
            name: "StintRecipeSuspended",
            expression: "stint_recipe_suspended == 1",
            hold: "0m",
            severity: Ticket,
            summary: "The recipe of the route {{ $labels.route }} is suspended: it turned out to be of no use",
            remedy: "The log says why; it is tried again after some requests.",
            labels: &[("instance", "a"), ("route", "r")],
            fires: &[("stint_recipe_suspended{instance=\"a\", route=\"r\"}", "1+0x60")],
            quiet: &[("stint_recipe_suspended{instance=\"a\", route=\"r\"}", "0+0x60")],
        },
    ]
}
