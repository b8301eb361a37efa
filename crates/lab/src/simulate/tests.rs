//! What a simulation can be relied on for: its laws, and that it is the same each time.

use stint_types::units::Tokens;

use super::*;

fn usual(requests: u64) -> Scenario {
    Scenario { requests, ..Scenario::built_in().unwrap() }
}

fn run(scenario: Scenario, policies: &[SimulationPolicy]) -> SimulationReport {
    simulate(scenario, None, None, &SimulationConfig { policies: policies.to_vec(), audit: true }).unwrap()
}

fn result(report: &SimulationReport, policy: SimulationPolicy) -> &PolicyResult {
    report.result(policy).unwrap()
}

/// Every policy of a report kept every law, and every request came to one end.
fn check_laws(report: &SimulationReport) {
    for result in &report.policies {
        assert_eq!(result.faults, InvariantViolations::default(), "{}", result.policy);
        let refused: u64 = result.refused.values().sum();
        assert_eq!(result.served + refused + result.failed, report.requests, "{}", result.policy);
    }
}

#[test]
fn one_seed_yields_the_same_bytes_and_another_others() {
    let bytes = |seed| {
        let report =
            run(Scenario { seed, ..usual(150) }, &[SimulationPolicy::Stint, SimulationPolicy::Random]);
        let plots: Vec<String> = plots(&report).iter().map(|(_, chart)| chart.svg()).collect();
        (serde_json::to_string(&report).unwrap(), plots)
    };
    assert_eq!(bytes(3), bytes(3));
    assert_ne!(bytes(3), bytes(4));
}

#[test]
fn no_limit_is_passed_nothing_stays_reserved_and_every_request_comes_to_an_end() {
    let text = "
        name = 'tight'\nrequests = 400\nbegins = '2026-11-02'
        arrivals = { per_second = 2.0, burst_every = 2, burst_length = 1, burst = 4 }
        [[class]]\ntask = 'math'\nshare = 1\ndifficulty = 0.5\nneeds = 2\nprompt = 300\nsolution = 200
        [[tenant]]\nname = 'rich'\nshare = 1
        [[tenant]]\nname = 'poor'\nshare = 2\nlimits = [{ money = '0.2', per = 'minute' }, { thinking = 9000, per = 'hour' }]
        [[model]]\nname = 'small'\nprice_input = '0.1'\nprice_output = '0.5'\nability = 0\nthinking = 400\nslots = 2\nqueue = 6\ntoken_ms = 2
        [[model]]\nname = 'large'\nprice_input = '3'\nprice_output = '15'\nability = 2\nthinking = 600\nslots = 4\nqueue = 5\ntoken_ms = 4
        [[event]]\nat = 0.3\nfor = 0.2\nmodel = 'large'\noutage = true
        [[event]]\nat = 0.4\nmodel = 'small'\nprice = 3";
    let report = run(Scenario::parse(text).unwrap(), &[]);
    check_laws(&report);
    let stint = result(&report, SimulationPolicy::Stint);
    assert!(stint.refused["insufficient_quota"] > 0, "{stint:?}");
    assert!(report.policies.iter().any(|result| result.retried > 0));
    assert!(report.policies.iter().any(|result| result.refused.contains_key("overloaded")));
}

#[test]
fn the_oracle_regrets_nothing_and_stint_less_than_random() {
    let report =
        run(usual(1200), &[SimulationPolicy::Stint, SimulationPolicy::Random, SimulationPolicy::Oracle]);
    check_laws(&report);
    let regret = |policy| result(&report, policy).regret_usd.unwrap();
    assert!(regret(SimulationPolicy::Oracle).abs() < 1e-12);
    assert!(
        0.0 < regret(SimulationPolicy::Stint)
            && regret(SimulationPolicy::Stint) < regret(SimulationPolicy::Random),
        "{}",
        report.table()
    );
}

#[test]
fn all_policies_meet_the_same_requests_with_the_same_luck() {
    let only = |policy| run(usual(120), &[policy]);
    let together = run(usual(120), &[SimulationPolicy::Random, SimulationPolicy::Fixed]);
    for policy in [SimulationPolicy::Random, SimulationPolicy::Fixed] {
        let (alone, beside) = (only(policy), result(&together, policy).clone());
        assert!((result(&alone, policy).value_usd - beside.value_usd).abs() < 1e-12);
    }
}

#[test]
fn a_model_that_is_out_is_left_after_few_failures_and_its_requests_go_elsewhere() {
    let mut scenario = usual(300);
    scenario.events.retain(|turn| turn.outage);
    for turn in &mut scenario.events {
        (turn.at, turn.lasts, turn.model) = (0.2, None, "nano".into());
    }
    scenario.tenants.clear();
    let report = run(scenario, &[SimulationPolicy::Unlearned]);
    let result = result(&report, SimulationPolicy::Unlearned);
    check_laws(&report);
    let nano = report.models.iter().position(|name| &**name == "nano").unwrap();
    let late = &result.course.shares[nano][40..];
    assert!(result.retried > 0 && result.failed == 0, "{result:?}");
    assert!(late.iter().all(|share| *share == 0.0), "{late:?}");
}

#[test]
fn configured_models_take_their_prices_from_the_configuration_and_the_rest_from_the_nearest_known() {
    let mut model = model_server::model(&ScenarioModel::default_model());
    (model.name, model.thinking_max) = ("mine".into(), Tokens(512));
    let mut catalog = Catalog::default();
    catalog.routes.insert("auto".into(), stint_types::catalog::Route::with_defaults("auto"));
    catalog.models.insert("mine".into(), std::sync::Arc::new(model));
    let how = SimulationConfig { policies: vec![SimulationPolicy::Stint], audit: true };
    let report = simulate(usual(60), Some((&catalog, &[])), None, &how).unwrap();
    check_laws(&report);
    assert_eq!(report.models, ["mine".into()]);
    assert!(report.policies[0].cost_usd.abs() < 1e-12 && report.policies[0].served == 60);
}

#[test]
fn the_scenarios_beside_the_load_tests_are_right() {
    for file in ["steady", "changes", "month"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../load-tests/scenarios");
        let text = std::fs::read_to_string(format!("{folder}/{file}.toml")).unwrap();
        let scenario = Scenario::parse(&text).unwrap();
        check_laws(&run(Scenario { requests: 40, ..scenario }, &[SimulationPolicy::Stint]));
    }
}

#[test]
fn a_scenario_that_makes_no_world_is_refused_with_a_remedy() {
    let check = |change: fn(&str) -> String, word: &str| {
        let text = change(include_str!("usual.toml"));
        let error = Scenario::parse(&text).unwrap_err();
        let told = match &error {
            ScenarioError::Toml(cause) => cause.to_string(),
            wrong => wrong.to_string(),
        };
        assert!(told.contains(word), "{told}");
    };
    check(|text| text.replace("slots = 48", "slots = 0"), "nobody serves nano");
    check(|text| text.replace("slots = 48", "slotz = 48"), "slotz");
    check(|text| text.replace("model = \"coder\"", "model = \"cooder\""), "cooder");
    check(|text| text.replace("2026-11-02", "monday"), "monday");
    check(|text| text.replace("wave = 0.6", "wave = 6"), "wave");
}

const LOG: &str = r#"
{"kind":"decision","version":1,"decision":{"id":"req_1","at":"2026-11-20T08:00:00Z","class":"math","difficulty":0.4,"why":"",
 "candidates":[{"model":"nano","prior":P,"belief":B},{"model":"large","prior":P,"belief":B}]},
 "outcome":{"model":"nano","choices":[{"prompt":90,"thinking":77,"thinking_ended":"closed","solution":20}]}}
{"kind":"verdict","version":1,"verdict":{"id":"req_1","source":"feedback","success":1.0,"weight":1.0}}
{"kind":"something_new","version":1}
{"kind":"decision","version":1,"decision":{"id":"req_2","at":"2026-11-20T08:00:05Z","class":"agentic","difficulty":0.9,"why":"",
 "candidates":[{"model":"nano","prior":P,"belief":B}]},
 "outcome":{"model":"large","choices":[{"prompt":95,"thinking":300,"thinking_ended":"cut","solution":9}]}}"#;

fn log() -> String {
    let demand = |done: &str| {
        format!(
            r#"{{"thinking":{{"mu":4.0,"sigma":0.5}},"solution":30,"prompt":100,"done":{done},"blind":0.01,"bend":1.0}}"#
        )
    };
    LOG.replace(",\n ", ",").replace('P', &demand("0.3")).replace('B', &demand("0.99"))
}

#[test]
fn a_decision_log_comes_again_with_what_was_observed_and_believed() {
    let trace = RequestTrace::parse(&log()).unwrap();
    let scenario = Scenario { tenants: Vec::new(), events: Vec::new(), ..usual(1000) };
    let how = SimulationConfig { policies: vec![SimulationPolicy::Cheapest], audit: true };
    let report = simulate(scenario, None, Some(trace), &how).unwrap();
    check_laws(&report);
    let result = result(&report, SimulationPolicy::Cheapest);
    assert_eq!((report.requests, result.served), (2, 2));
    // Both are served by `nano`: the first thinks as long as it did, and both are as likely right as was believed.
    assert!(result.thinking >= f64::midpoint(77.0, 1.0) && result.quality > 0.9, "{result:?}");
    assert!((report.seconds - 5.0).abs() < 1e-9);
}

/// With a queue of an hour logged for `nano`, where waiting has a price, the plan takes `large`.
#[test]
fn a_decision_is_made_again_by_the_queues_that_were_logged() {
    let cost = |queue: &str| {
        let stood = format!(
            r#""nano","conditions":{{"queue":{queue},"queue_least":0.0,"prefill":0.0,"token":0.001,"healthy":true}}"#
        );
        let trace = RequestTrace::parse(&log().replacen("\"nano\"", &stood, 1)).unwrap();
        let mut scenario = Scenario { tenants: Vec::new(), events: Vec::new(), ..usual(1) };
        scenario.models.retain(|model| ["nano", "large"].contains(&&*model.name));
        let how = SimulationConfig { policies: vec![SimulationPolicy::Unlearned], audit: true };
        let report = simulate(scenario, None, Some(trace), &how).unwrap();
        result(&report, SimulationPolicy::Unlearned).cost_usd
    };
    let (waiting, idle) = (cost("3600.0"), cost("0.0"));
    assert!(waiting > idle, "{waiting} {idle}");
}

#[test]
fn a_line_that_is_none_is_named_and_an_empty_log_refused() {
    let error = RequestTrace::parse(&log().replace("\"mu\":4.0,", "")).unwrap_err();
    assert_eq!(error.to_string(), "line 2 is no line of a decision log: take it out, or record again");
    assert!(matches!(RequestTrace::parse(""), Err(TraceError::Empty)));
}
