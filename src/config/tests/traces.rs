//! Where traces go, by the file and by OpenTelemetry's usual variables.

use std::time::Duration;

use super::*;
use crate::traces::{self, Protocol, TraceSampling};

fn read(text: &str, variables: &[(&str, &str)]) -> Option<traces::Settings> {
    let own =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    load_with(text, &|name| own(name).or_else(|| env(name))).unwrap().traces
}

fn check(text: &str, variables: &[(&str, &str)], endpoint: Option<&str>) {
    let settings = read(text, variables);
    assert_eq!(settings.as_ref().map(|settings| &*settings.endpoint), endpoint, "{text} {variables:?}");
}

#[test]
fn traces_go_where_the_file_says_and_else_where_the_variables_do() {
    let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318/");
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://otel/own");
    check("", &[], None);
    check("[traces]\nsample = 0.5\n", &[], None);
    check("[traces]\nendpoint = 'http://here:4318'\n", &[general], Some("http://here:4318/v1/traces"));
    check("[traces]\nendpoint = 'http://here/v1/traces'\n", &[], Some("http://here/v1/traces"));
    check("[traces]\nendpoint = 'http://here:4317'\nprotocol = 'grpc'\n", &[], Some("http://here:4317"));
    check("", &[general], Some("http://otel:4318/v1/traces"));
    check("", &[general, own], Some("http://otel/own"));
    check("", &[general, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], Some("http://otel:4318"));
    check("", &[general, ("OTEL_SDK_DISABLED", "true")], None);
    check("", &[general, ("OTEL_TRACES_EXPORTER", "none")], None);
}

#[test]
fn what_the_variables_say_holds_where_the_file_says_nothing() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "X-Tenant=a, authorization=Bearer%20sk-secret=="),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ("OTEL_SERVICE_NAME", "gate"),
    ];
    let settings = read("", &variables).unwrap();
    assert_eq!(settings.sampler, TraceSampling { ratio: 0.25, follows_caller: false });
    assert_eq!(settings.timeout, Duration::from_millis(2500));
    let headers: Vec<_> = settings.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(headers, [("x-tenant", "a"), ("authorization", "Bearer sk-secret==")]);
    assert!(settings.resource.contains(&("service.name".to_owned(), "gate".to_owned())));
    assert!(!format!("{settings:?}").contains("sk-secret"), "a secret shows itself");
    let own = "[traces]\nsample = 1.0\ntimeout = '1s'\nservice = 'own'\nheaders_env = 'COLLECTOR_HEADERS'\n";
    let settings = read(own, &variables).unwrap();
    assert_eq!(
        (settings.sampler.ratio.to_bits(), settings.timeout),
        (1.0_f64.to_bits(), Duration::from_secs(1))
    );
    assert_eq!((settings.protocol, settings.headers.len()), (Protocol::HttpProtobuf, 1));
    assert!(settings.resource.contains(&("service.name".to_owned(), "own".to_owned())));
}

#[test]
fn what_is_no_address_is_refused_with_one_that_is() {
    let mistakes = load_text("[traces]\nendpoint = 'otel'\n").map(drop).unwrap_err().to_string();
    assert!(mistakes.contains("line 2") && mistakes.contains("http://127.0.0.1:4318"), "{mistakes}");
}

#[test]
fn an_address_has_no_secrets() {
    for endpoint in ["http://me:SECRET@here:4318", "http://here:4318/?k=SECRET", "http://here:4318/#SECRET"] {
        let text = format!("[traces]\nendpoint = '{endpoint}'\n");
        let mistakes = load_text(&text).map(drop).unwrap_err().to_string();
        assert!(mistakes.contains("line 2") && !mistakes.contains("SECRET"), "{mistakes}");
    }
}
