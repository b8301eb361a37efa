//! One request of an HTTP/2 connection. Its answer goes out in small pieces, and the request ends when its caller takes none of them for
//! too long: the others of the connection are no concern of that, and may be other callers'.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// The most bytes of an answer that are handed over at once: a caller who takes nothing has at most so many beyond its window.
const PIECE_MAX: usize = 8 << 10;

tokio::task_local! {
    /// How far the answer of the request has come that this task serves.
    static CURRENT: DeliveryProgress;
}

/// How a request of a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// All of its answer was handed over.
    Answered,
    /// Its caller took it back, or the connection broke.
    TakenBack,
    /// Its caller took nothing for too long.
    Stalled,
}

/// How far an answer has come. Clones share it.
#[derive(Debug, Clone, Default)]
struct DeliveryProgress(Arc<Delivery>);

#[derive(Debug, Default)]
struct Delivery {
    /// How many pieces were given to hyper.
    pieces: AtomicU64,
    /// True while the last of them waits for the caller to have room.
    is_waiting: AtomicBool,
    is_over: AtomicBool,
}

/// Serves a request until its end, or until its caller has taken nothing for so long.
pub(super) async fn watch(work: impl Future<Output = ()>, patience: Duration) -> StreamEnd {
    let progress = DeliveryProgress::default();
    let work = CURRENT.scope(progress.clone(), work);
    tokio::select! {
        biased;
        () = work => if progress.is_over() { StreamEnd::Answered } else { StreamEnd::TakenBack },
        // Looked at whenever the work has paused: only then is it known what it waits for.
        () = progress.stalled(patience) => StreamEnd::Stalled,
    }
}

/// The body of the answer to the request that this task serves.
pub(in crate::http) fn watched(body: Body) -> Body {
    let progress = CURRENT.try_with(DeliveryProgress::clone).unwrap_or_default();
    progress.set_over(body.is_end_stream());
    Body::new(WatchedBody { body, rest: Bytes::new(), progress })
}

impl DeliveryProgress {
    fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    fn set_over(&self, is_over: bool) {
        self.0.is_over.store(is_over, Ordering::Relaxed);
    }

    fn set_waiting(&self, is_waiting: bool) {
        self.0.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Until one piece has waited for so long.
    async fn stalled(&self, patience: Duration) {
        let mut waiting: Option<(u64, Pin<Box<Sleep>>)> = None;
        let stalled = poll_fn(|cx| {
            if !self.0.is_waiting.load(Ordering::Relaxed) {
                waiting = None;
                return Poll::Pending;
            }
            let piece = self.0.pieces.load(Ordering::Relaxed);
            let (_, timer) = match waiting.take() {
                Some(known) if known.0 == piece => waiting.insert(known),
                _ => waiting.insert((piece, Box::pin(sleep(patience)))),
            };
            timer.as_mut().poll(cx)
        });
        stalled.await;
    }
}

struct WatchedBody {
    body: Body,
    /// What is left of a frame that was larger than a piece.
    rest: Bytes,
    progress: DeliveryProgress,
}

impl WatchedBody {
    fn piece(&mut self) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE_MAX));
        self.progress.0.pieces.fetch_add(1, Ordering::Relaxed);
        self.progress.set_waiting(true);
        self.progress.set_over(self.is_end_stream());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        // Hyper asks for more when the caller has room.
        self.progress.set_waiting(false);
        if !self.rest.is_empty() {
            return self.piece();
        }
        let frame = ready!(pin!(&mut self.body).poll_frame(cx));
        match frame {
            None => self.progress.set_over(true),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    return self.piece();
                }
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            },
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(inner.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream::repeat;
    use http_body_util::BodyExt;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_large_answer_goes_out_in_small_pieces_and_is_the_same() {
        let text: Vec<u8> = (0..100_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut body = watched(Body::from(text.clone()));
        assert_eq!(body.size_hint().exact(), Some(100_000));
        let mut taken = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_MAX);
            taken.extend_from_slice(&piece);
            assert_eq!(body.is_end_stream(), taken.len() == text.len());
        }
        assert_eq!(taken, text);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_no_piece_for_too_long_is_given_up_and_who_waits_for_one_is_not() {
        let patience = Duration::from_secs(30);
        let endless = || Body::from_stream(repeat(Ok::<_, Infallible>(Bytes::from_static(b"x"))));
        let slowly = async {
            let mut body = watched(endless());
            for _ in 0..5 {
                let _ = body.frame().await;
                sleep(patience / 2).await;
            }
            std::future::pending::<()>().await;
        };
        let began = Instant::now();
        assert_eq!(watch(slowly, patience).await, StreamEnd::Stalled);
        assert_eq!(began.elapsed(), patience * 3, "counted from the last piece that was taken");
        let mute = async {
            let body = Body::from_stream(futures_util::stream::once(async move {
                sleep(patience * 9).await;
                Ok::<_, Infallible>(Bytes::from_static(b"x"))
            }));
            let _ = watched(body).collect().await;
        };
        assert_eq!(watch(mute, patience).await, StreamEnd::Answered);
        let taken_back = async {
            let _ = watched(endless()).frame().await;
        };
        assert_eq!(watch(taken_back, patience).await, StreamEnd::TakenBack);
    }
}
