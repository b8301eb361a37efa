//! The id of a response, which is its request's own under another prefix.

use stint_types::units::RequestId;

/// What the id of a response begins with; the rest is that of its request's id.
const PREFIX: &str = "resp_";

/// The id of a response.
pub(super) fn response_id(id: RequestId) -> String {
    id.to_string().replacen("req_", PREFIX, 1)
}

/// The request that made a response, by the response's id.
pub(super) fn request_id_of(name: &str) -> Option<RequestId> {
    name.strip_prefix(PREFIX)?.parse().ok()
}
