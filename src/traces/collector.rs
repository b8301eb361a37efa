//! The way to the collector.

use std::collections::HashMap;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    ExporterBuildError, Protocol as OtlpProtocol, SpanExporter, WithExportConfig, WithHttpConfig,
    WithTonicConfig, tonic_types::metadata::MetadataMap,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::outbound;

use super::settings::{Protocol, Settings};

/// A collector cannot be spoken to as it is described.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The client cannot be made.
    #[error("no client for the collector of traces: {0}")]
    Client(#[from] reqwest::Error),
    /// The exporter cannot be made.
    #[error("no exporter of traces: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// What sends spans there.
pub(super) fn connect(settings: &Settings) -> Result<SpanExporter, CollectorError> {
    let mut exporter = match settings.protocol {
        Protocol::HttpProtobuf => over_http(settings)?,
        Protocol::Grpc => over_grpc(settings)?,
    };
    let attributes = settings.resource.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    exporter.set_resource(&Resource::builder_empty().with_attributes(attributes).build());
    Ok(exporter)
}

fn over_http(settings: &Settings) -> Result<SpanExporter, CollectorError> {
    let client = outbound::client_builder().timeout(settings.timeout).build()?;
    let headers: HashMap<String, String> = settings.headers.iter().cloned().collect();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_headers(headers)
        .with_endpoint(&settings.endpoint)
        .with_timeout(settings.timeout)
        .with_protocol(OtlpProtocol::HttpBinary);
    Ok(exporter.build()?)
}

fn over_grpc(settings: &Settings) -> Result<SpanExporter, CollectorError> {
    let headers = settings.headers.iter().filter_map(|(name, value)| {
        let name = name.parse::<HeaderName>().ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_metadata(MetadataMap::from_headers(headers.collect::<HeaderMap>()))
        .with_endpoint(&settings.endpoint)
        .with_timeout(settings.timeout);
    Ok(exporter.build()?)
}
