//! Targets and how they are treated.

use std::time::Duration;

use crate::config::{Deployment, ModelConfig, ModelSource};
use stint_backend::fleet::{self, OverloadSignal};
use stint_types::chat::SigningDomain;
use stint_types::units::Priority;

use super::{check, load_text};

fn deployments(text: &str) -> Vec<Deployment> {
    load_text(text).unwrap().backends.last().unwrap().models[0].deployments.clone()
}

#[test]
fn a_backend_is_its_own_deployment_and_others_differ_from_it_in_what_they_say() {
    let head = "[[backend]]\nname = 'b'\nbase_url = 'http://a/v1'\nconnect_timeout = '1s'\nmodels = ['m']\n";
    let own = deployments(&format!("{head}metrics_url = 'http://a/metrics'\n"));
    assert_eq!((own.len(), &*own[0].name, own[0].metrics_url.as_deref()), (1, "b", Some("http://a/metrics")));
    let several = deployments(&format!(
        "{head}api_key_env = 'OPENAI_API_KEY'\n[[backend.deployment]]\n[[backend.deployment]]\nname = 'eu'\n\
         base_url = 'http://eu/v1'\nmetrics_url = 'http://eu/metrics'\n"
    ));
    let names: Vec<(&str, &str)> = several.iter().map(|it| (&*it.name, &*it.client.base_url)).collect();
    assert_eq!(names, [("1", "http://a/v1"), ("eu", "http://eu/v1")]);
    for deployment in &several {
        assert_eq!(deployment.client.connect, Duration::from_secs(1));
        assert!(deployment.client.api_key.is_some());
    }
}

#[test]
fn a_source_is_reached_as_its_deployment_says() {
    let text = "[[backend]]\nmodels = ['m']\n[[backend.deployment]]\nbase_url = 'http://eu/v1'\n";
    let settings = load_text(text).unwrap();
    let served = &settings.backends.last().unwrap().models[0];
    let ModelSource::OpenAi(reached) = served.source.at_deployment(&served.deployments[0]) else {
        panic!("a kind")
    };
    assert_eq!((&*reached.client.base_url, &*reached.model), ("http://eu/v1", "m"));
}

#[test]
fn a_model_may_be_called_otherwise_at_each_deployment() {
    let names = |text: &str| -> Vec<Vec<String>> {
        let settings = load_text(text).unwrap();
        let models = settings.backends.last().unwrap().models.clone();
        let called =
            |served: &ModelConfig, at: usize| match served.source.at_deployment(&served.deployments[at]) {
                ModelSource::OpenAi(reached) => reached.model,
                other => panic!("{other:?}"),
            };
        models
            .iter()
            .map(|served| (0..served.deployments.len()).map(|at| called(served, at)).collect())
            .collect()
    };
    let head = "[[backend]]\nbase_url = 'http://a/v1'\n";
    let one = format!(
        "{head}[[backend.deployment]]\nupstream = 'eu-5'\n[[backend.deployment]]\n[[backend.model]]\nname = 'm'\n\
         upstream = 'gpt-5'\n"
    );
    assert_eq!(names(&one), [["eu-5", "gpt-5"]]);
    let two = format!("{head}models = ['m', 'n']\n[[backend.deployment]]\nupstreams = {{ n = 'eu-n' }}\n");
    assert_eq!(names(&two), [["m"], ["eu-n"]]);
    check(
        &format!(
            "{head}models = ['m', 'n']\n[[backend.deployment]]\nupstream = 'x'\nupstreams = {{ o = 'y' }}\n"
        ),
        &[
            "line 5: backend.deployment.upstream: which of the models is it?; say it of each, upstreams = { some-model = \
             \"its-name-there\" }",
            "line 6: backend.deployment.upstreams: \"o\" is no model of this backend; write the name that callers use for \
             one of this backend's models",
        ],
    );
}

#[test]
fn signatures_are_of_a_credential_or_of_an_organization() {
    let origins = |more: &str| -> Vec<SigningDomain> {
        let text = format!(
            "[[backend]]\nkind = 'anthropic'\nmodels = ['m']\napi_key_env = 'OPENAI_API_KEY'\n{more}"
        );
        deployments(&text).iter().map(|deployment| deployment.client.origin()).collect()
    };
    let same = "[[backend.deployment]]\n[[backend.deployment]]\nname = 'b'\n";
    let [one, other] = origins(same)[..] else { panic!() };
    assert_eq!(one, other, "one account");
    let places = "[[backend.deployment]]\n[[backend.deployment]]\nname = 'b'\nbase_url = 'http://b/v1'\n";
    let [one, other] = origins(places)[..] else { panic!() };
    assert_ne!(one, other);
    let [one, other] = origins(&format!("organization = 'acme'\n{places}"))[..] else { panic!() };
    assert_eq!(one, other, "said to be one");
    let [one, other] = origins(&format!("organization = 'acme'\n{places}organization = 'emca'\n"))[..] else {
        panic!()
    };
    assert_ne!(one, other);
}

#[test]
fn mistakes_in_deployments_are_named() {
    let head = "[[backend]]\nmodels = ['m']\n[[backend.deployment]]\n";
    check(
        head,
        &["line 3: backend.deployment.base_url: missing; write where its API begins, here or in the backend"],
    );
    check(
        &format!(
            "{head}name = 'a'\nbase_url = 'x'\n[[backend.deployment]]\nname = 'a'\nbase_url = 'http://b'\n"
        ),
        &[
            "line 5: backend.deployment.base_url: not a URL: relative URL without a base; write it like \
             \"https://api.example.com/v1\"",
            "line 7: backend.deployment.name: a second deployment \"a\"; give each a name of its own",
        ],
    );
}

#[test]
fn without_a_word_the_usual_limits_hold_and_each_can_be_said() {
    assert_eq!(load_text("").unwrap().resilience, fleet::Settings::default());
    let text = "[resilience]\nattempts_max = 1\nretry_share = 0.5\nfailures_max = 9\nrest_min = '5s'\n\
                concurrency_max = 300\nqueue_max = 0\nqueue_wait_max = '3s'\n";
    let settings = load_text(text).unwrap().resilience;
    assert_eq!((settings.retry.attempts_max, settings.breaker.failures_max, settings.queue_max), (1, 9, 0));
    assert_eq!(
        (settings.breaker.rest_min, settings.wait_max),
        (Duration::from_secs(5), Duration::from_secs(3))
    );
    assert_eq!(settings.concurrency.unwrap().max, 300);
    let hedge =
        |after: &str| load_text(&format!("[resilience]\nhedge_after = '{after}'\n")).unwrap().resilience;
    assert_eq!(hedge("800ms").hedge_after, Some(Duration::from_millis(800)));
    check(
        "[resilience]\nhedge_after = '1s'\nretry_sent = false\nattempts_max = 1\n",
        &[
            "line 2: resilience.hedge_after: retry_sent = false rules it out; take one of them away: both may be billed",
            "line 2: resilience.hedge_after: attempts_max = 1 rules it out; write attempts_max = 2 or more",
        ],
    );
    check(
        "[resilience]\nrest_min = '2m'\nconcurrency_start = 2\nconcurrency_min = 4\n",
        &[
            "line 1: resilience.rest_max: shorter than rest_min; write the longer one here",
            "line 3: resilience.concurrency_start: not between its bounds; write concurrency_min ≤ \
             concurrency_start ≤ concurrency_max",
        ],
    );
}

#[test]
fn a_key_may_be_for_batch_work() {
    let hash = format!("hash = 'sha256:{}'", "1".repeat(64));
    let settings = load_text(&format!("[[key]]\nname = 'night'\npriority = 'batch'\n{hash}\n")).unwrap();
    assert_eq!(settings.tenants[0].priority, Priority::Batch);
    let imported = crate::config::keys(
        &format!("[[key]]\nname = 'n'\npriority = 'batch'\n{hash}\n"),
        "x",
        &settings.catalog,
    );
    assert_eq!(imported.unwrap().tenants[0].priority, Priority::Batch);
}

#[test]
fn ones_own_servers_are_judged_by_waits_and_providers_by_refusals_unless_it_is_said() {
    let signal = |backend: &str| {
        let text = format!("[[backend]]\nmodels = ['m']\n{backend}\n");
        let settings = load_text(&text).unwrap();
        let models = settings.backends.iter().flat_map(|backend| &backend.models);
        models.flat_map(|model| &model.deployments).next().unwrap().signal
    };
    for own in ["kind = 'vllm'", "kind = 'llamacpp'", "kind = 'openai'"] {
        assert_eq!(
            signal(&format!("{own}\nbase_url = 'http://10.0.0.1/v1'")),
            OverloadSignal::Waits,
            "{own}"
        );
    }
    for hosted in ["kind = 'anthropic'", "kind = 'mistral'", "base_url = 'https://api.openai.com/v1'"] {
        assert_eq!(signal(hosted), OverloadSignal::Refusals, "{hosted}");
        assert_eq!(
            signal(&format!("{hosted}\nconcurrency_signal = 'waits'")),
            OverloadSignal::Waits,
            "{hosted}"
        );
    }
}
