//! A connection that speaks HTTP/2, from its preface to its end.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use stint_types::tasks::Tasks;

use crate::http::Settings;
use crate::http::caller_stream::CallerStream;
use crate::http::connection_end::{IDLE_GRACE, given_up};
use crate::http::connection_service::ConnectionService;
use crate::http::connection_table::is_within;

use super::reset_budget::ResetBudget;
use super::stream_spawner::StreamSpawner;

/// How a caller begins who speaks HTTP/2 (RFC 9113, section 3.4). No request of HTTP/1.1 begins so.
pub(in crate::http) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What the counter calls a connection that is ended for the requests that it took back.
pub(in crate::http) const RESETS: &str = "resets";

/// How many bytes of a request's body may be on their way, and of all of a connection: what waits here to be read is no more.
const REQUEST_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// How many bytes of an answer may wait for its caller, beside one piece.
const SEND_BUFFER: usize = 16 << 10;
/// How many requests may have been taken back before we looked at them.
const UNSEEN_RESETS_MAX: usize = 20;
/// How many requests may be wrong in a way that ends them alone.
const WRONG_REQUESTS_MAX: usize = 100;
/// What h2 counts for each line of a head, beside its name and value.
const LINE_OVERHEAD: usize = 32;

/// What a connection is served with.
#[derive(Debug)]
pub(in crate::http) struct Http2Connection {
    pub(in crate::http) stream: CallerStream,
    pub(in crate::http) tasks: Tasks,
    pub(in crate::http) service: ConnectionService,
}

/// Answers requests until the caller ends the connection, it has been idle for too long, `leaving` says to go, or too many requests
/// were taken back. Requests that run then are answered yet.
pub(in crate::http) async fn serve(
    Http2Connection { stream, tasks, service }: Http2Connection,
    settings: &Settings,
    leaving: impl Future<Output = bool>,
    cut_off: impl Future<Output = ()>,
) {
    let (place, turned_away) = (service.place.clone(), service.metrics.requests.turned_away.clone());
    let service = Arc::new(service);
    // Of a proxy's requests each is another caller's: they are bounded by their addresses.
    let is_proxy = is_within(&settings.trusted_proxies, service.peer);
    let resets = Arc::new(if is_proxy { ResetBudget::unlimited() } else { ResetBudget::new() });
    let spawner = StreamSpawner { tasks, resets: resets.clone(), patience: settings.write_timeout };
    let answer = service_fn(move |request| service.clone().answer(request));
    let connection = builder(settings, spawner).serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Ok(ended),
        is_evicted = leaving => Err(if is_evicted { IDLE_GRACE } else { settings.write_timeout }),
        () = place.idle_for(idle_max(settings)) => Err(IDLE_GRACE),
        () = resets.spent() => {
            turned_away.with_label_values(&[RESETS]).inc();
            Err(IDLE_GRACE)
        }
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(patience) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                // Dropping a connection ends its requests, which settles them.
                // What h2 still has of an answer, its caller may take as slowly as any.
                () = given_up(&place, Some(patience), cut_off) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// A caller takes the end of an answer after we have done with it.
fn idle_max(settings: &Settings) -> Duration {
    settings.head_timeout.max(settings.write_timeout)
}

fn builder(settings: &Settings, spawner: StreamSpawner) -> Builder<StreamSpawner> {
    // The exact limits are checked later, with an answer that says what is wrong.
    let head = settings.head_max.saturating_add(LINE_OVERHEAD * (settings.headers_max + 4));
    let mut builder = Builder::new(spawner);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.http2_requests_max)
        .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
        .initial_stream_window_size(REQUEST_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(UNSEEN_RESETS_MAX)
        .max_local_error_reset_streams(WRONG_REQUESTS_MAX)
        .keep_alive_interval(settings.heartbeat)
        .keep_alive_timeout(settings.write_timeout);
    builder
}
