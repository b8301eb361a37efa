//! The settings of traces.

use std::fmt;
use std::time::Duration;

/// Where traces go, and which.
#[derive(Clone, PartialEq)]
pub struct Settings {
    /// The collector: for HTTP the whole address, for gRPC its base.
    pub endpoint: String,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// What is sent with each batch; a credential may be among it.
    pub headers: Vec<(String, String)>,
    /// Which requests are recorded.
    pub sampler: TraceSampling,
    /// How many ended requests may wait to be sent.
    pub queue_max: usize,
    /// How long one batch may take.
    pub timeout: Duration,
    /// Whether upstreams are told the trace that a call belongs to.
    pub propagates: bool,
    /// What every span says of this server.
    pub resource: Vec<(String, String)>,
}

/// How a collector is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf over HTTP.
    HttpProtobuf,
    /// gRPC.
    Grpc,
}

/// Which requests are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceSampling {
    /// The share of traces that are recorded.
    pub ratio: f64,
    /// True if a caller who traces decides for its own.
    pub follows_caller: bool,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Settings")
            .field("endpoint", &self.endpoint)
            .field("protocol", &self.protocol)
            .field("headers", &headers)
            .field("sampler", &self.sampler)
            .field("queue_max", &self.queue_max)
            .field("timeout", &self.timeout)
            .field("propagates", &self.propagates)
            .field("resource", &self.resource)
            .finish()
    }
}
