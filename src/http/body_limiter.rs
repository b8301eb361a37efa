//! Limits the memory that the bodies of all requests in flight take together, and those of each account; and large answers, until
//! they are taken.
//!
//! A request takes room as its body arrives, not as it declares it: who sends nothing takes nothing. It gives the room back
//! when its answer is over. Where there are keys, no account takes more than half, so that nobody fills it for the others.

use std::error::Error;
use std::num::NonZero;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::available_parallelism;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Extensions, Method, Request};
use axum::response::{IntoResponse, Response};
use dashmap::DashMap;
use hyper::body::{Frame, SizeHint};

use stint_types::tasks::{AccountTurns, Turn};
use stint_types::tenant::Tenant;
use stint_types::units::AccountId;

use super::Settings;
use super::error::ApiError;
use super::held_body::hold;

/// Room is counted in pieces of so many bytes.
const PIECE: usize = 1 << 10;

/// An answer of fewer bytes takes no room.
const ANSWER_FREE: u64 = 64 << 10;

/// Room that is taken.
pub(super) type SharedBodyPermit = Arc<BodyPermit>;

/// What is left of the room. Clones share what is taken, and so do rooms of other sizes made of this one.
#[derive(Debug, Clone)]
pub struct BodyLimiter {
    used: Arc<AtomicUsize>,
    used_by: Arc<DashMap<AccountId, usize>>,
    pieces: usize,
    pieces_of_account: usize,
    /// Turns at taking large ones apart.
    turns: AccountTurns,
}

/// The room of one request's bytes. Gives it back when it is dropped.
#[derive(Debug)]
pub(super) struct BodyPermit {
    limiter: BodyLimiter,
    taken: Mutex<TakenRoom>,
}

#[derive(Debug, Default)]
struct TakenRoom {
    bytes: usize,
    pieces: usize,
    /// Whose share it counts in, once that is known.
    account: Option<AccountId>,
}

/// There is no room for more of a body.
#[derive(Debug, thiserror::Error)]
#[error("no room for the body")]
struct NoRoom;

impl BodyLimiter {
    /// An empty room.
    pub fn new(settings: &Settings) -> BodyLimiter {
        BodyLimiter::of(settings.bodies_max, settings.body_max)
    }

    fn of(bodies_max: usize, body_max: usize) -> BodyLimiter {
        let all = pieces(bodies_max);
        // One body fits at least.
        let pieces_of_account = (all / 2).max(pieces(body_max)).min(all);
        let turns = AccountTurns::new(available_parallelism().map_or(1, NonZero::get) / 2);
        BodyLimiter { used: Arc::default(), used_by: Arc::default(), pieces: all, pieces_of_account, turns }
    }

    /// The same room with other bounds. What is taken stays so, also where it is more than they allow.
    #[must_use]
    pub fn resized(&self, settings: &Settings) -> BodyLimiter {
        let (used, used_by, turns) = (self.used.clone(), self.used_by.clone(), self.turns.clone());
        BodyLimiter { used, used_by, turns, ..BodyLimiter::new(settings) }
    }

    /// Room for what an account's request brings along beside its body, held until it is dropped.
    ///
    /// # Errors
    /// 503 where there is none.
    pub(super) fn acquire(&self, bytes: usize, tenant: &Tenant) -> Result<SharedBodyPermit, ApiError> {
        let permit = self.permit();
        permit.assign(tenant);
        permit.grow(bytes).map_err(|NoRoom| no_room())?;
        Ok(Arc::new(permit))
    }

    /// A permit for nothing yet.
    fn permit(&self) -> BodyPermit {
        BodyPermit { limiter: self.clone(), taken: Mutex::default() }
    }

    /// Takes so many pieces, of an account's share too if the account is known.
    fn take(&self, pieces: usize, account: Option<&AccountId>) -> Result<(), NoRoom> {
        let within = |most: usize| {
            // A room that was made smaller may be more than full; what needs none of it gets in.
            move |used: usize| used.checked_add(pieces).filter(|all| pieces == 0 || *all <= most)
        };
        if let Some(account) = account {
            let mut share = self.used_by.entry(account.clone()).or_default();
            *share = within(self.pieces_of_account)(*share).ok_or(NoRoom)?;
        }
        let taken = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, within(self.pieces));
        taken.map(drop).map_err(|_| {
            self.give_back_share(pieces, account);
            NoRoom
        })
    }

    fn give_back(&self, pieces: usize, account: Option<&AccountId>) {
        self.used.fetch_sub(pieces, Ordering::AcqRel);
        self.give_back_share(pieces, account);
    }

    fn give_back_share(&self, pieces: usize, account: Option<&AccountId>) {
        let Some(account) = account else { return };
        self.used_by.remove_if_mut(account, |_, share| {
            *share = share.saturating_sub(pieces);
            *share == 0
        });
    }
}

impl BodyPermit {
    /// It counts in the share of this tenant's account, from its first byte on. Without keys everybody is one tenant, which has all
    /// of the room.
    fn assign(&self, tenant: &Tenant) {
        let mut taken = self.lock();
        if taken.bytes == 0 && tenant.key.is_some() {
            taken.account.get_or_insert_with(|| tenant.account.clone());
        }
    }

    /// Takes room for so many bytes more.
    fn grow(&self, bytes: usize) -> Result<(), NoRoom> {
        let mut taken = self.lock();
        let all = taken.bytes.saturating_add(bytes);
        let more = pieces(all) - taken.pieces;
        self.limiter.take(more, taken.account.as_ref())?;
        taken.bytes = all;
        taken.pieces += more;
        Ok(())
    }

    /// Takes room for an answer. One that is larger than an account's share passes alone.
    fn grow_by_answer(&self, bytes: u64) -> Result<(), NoRoom> {
        let most = self.limiter.pieces_of_account * PIECE;
        self.grow(usize::try_from(bytes).unwrap_or(most).min(most))
    }

    /// Takes room for what is made of a body. What is larger than an account's share passes alone.
    fn grow_by_values(&self, bytes: usize) -> Result<(), NoRoom> {
        let most = self.limiter.pieces_of_account * PIECE;
        let taken = self.lock().bytes;
        self.grow(bytes.min(most.saturating_sub(taken)))
    }

    /// Waits for its account's turn to take a large body apart.
    pub(super) async fn begin_parsing(&self) -> Turn {
        let account = self.lock().account.clone();
        self.limiter.turns.begin(&account.unwrap_or_else(|| Tenant::anonymous().account)).await
    }

    fn lock(&self) -> MutexGuard<'_, TakenRoom> {
        // Every change is made whole while the lock is held.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        let taken = std::mem::take(self.taken.get_mut().unwrap_or_else(PoisonError::into_inner));
        self.limiter.give_back(taken.pieces, taken.account.as_ref());
    }
}

/// Counts a request's body in the share of its account, from now on: its key was looked at, and nothing was read.
pub(super) fn assign(extensions: &Extensions, tenant: &Tenant) {
    if let Some(permit) = extensions.get::<SharedBodyPermit>() {
        permit.assign(tenant);
    }
}

/// Room for what is made of a request's body; any, where there is no body that counts.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueRoom(Option<SharedBodyPermit>);

impl ValueRoom {
    pub(super) fn of(extensions: &Extensions) -> ValueRoom {
        ValueRoom(extensions.get::<SharedBodyPermit>().cloned())
    }

    /// Takes room for so many bytes more; false where there is none.
    pub(super) fn take(&self, bytes: usize) -> bool {
        self.0.as_ref().is_none_or(|permit| permit.grow_by_values(bytes).is_ok())
    }
}

/// 503 where a body could not be read for want of room.
pub(super) fn refusal(error: &axum::Error) -> Option<ApiError> {
    let mut causes = std::iter::successors(Some(error as &dyn Error), |&cause| cause.source());
    causes.any(<dyn Error>::is::<NoRoom>).then(no_room)
}

/// Takes room for each body as it arrives, and keeps it until the answer is over. What is behind it may ask for more.
pub(super) async fn limit_bodies<F: Future<Output = Response>>(
    room: &BodyLimiter,
    request: Request<Body>,
    next: impl FnOnce(Request<Body>) -> F,
) -> Response {
    let taken = Arc::new(room.permit());
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(room.clone());
    parts.extensions.insert(taken.clone());
    let body = Body::new(CountedBody { body, permit: taken.clone() });
    let is_read_again = parts.method == Method::GET;
    let answer = next(Request::from_parts(parts, body)).await;
    let Some(size) = answer.body().size_hint().exact() else { return answer.map(|body| hold(body, taken)) };
    if size < ANSWER_FREE {
        return answer;
    }
    // What was stored can be read again. Other answers were paid for.
    match taken.grow_by_answer(size) {
        Err(NoRoom) if is_read_again => no_room().into_response(),
        Ok(()) | Err(NoRoom) => answer.map(|body| hold(body, taken)),
    }
}

/// A body that takes room for each part of it, and fails where there is none.
struct CountedBody {
    body: Body,
    permit: SharedBodyPermit,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx)).map(|frame| {
            let frame = frame?;
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.permit.grow(bytes).map_err(axum::Error::new)?;
            Ok(frame)
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    /// As the caller stated it.
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// 503: others' requests take the room.
pub(super) fn no_room() -> ApiError {
    let message = "the requests in flight leave no room for what this one brings; try again shortly";
    ApiError::overloaded(message.to_owned(), Duration::from_secs(1))
}

fn pieces(bytes: usize) -> usize {
    bytes.div_ceil(PIECE)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::State;
    use axum::middleware::{Next, from_fn_with_state};
    use axum::routing::get;
    use stint_types::tenant::hash_key;
    use tower_service::Service;

    use super::*;

    fn tenant(name: &str) -> Tenant {
        Tenant::new(AccountId::new(name), hash_key(name))
    }

    #[test]
    fn without_keys_everybody_shares_all_of_it() {
        let room = BodyLimiter::of(8 * PIECE, 2 * PIECE);
        let first = room.acquire(6 * PIECE, &Tenant::anonymous()).unwrap();
        assert!(room.acquire(3 * PIECE, &Tenant::anonymous()).is_err());
        drop(first);
        assert_eq!((room.used.load(Ordering::Acquire), room.used_by.len()), (0, 0));
    }

    #[test]
    fn room_is_taken_as_bytes_arrive_and_given_back() {
        let room = BodyLimiter::of(8 * PIECE, 4 * PIECE);
        let permit = room.permit();
        permit.assign(&tenant("a"));
        assert_eq!(room.used.load(Ordering::Acquire), 0, "nothing has arrived");
        permit.grow(1).unwrap();
        permit.grow(PIECE).unwrap();
        assert_eq!(room.used.load(Ordering::Acquire), 2);
        drop(permit);
        assert_eq!((room.used.load(Ordering::Acquire), room.used_by.len()), (0, 0));
    }

    #[test]
    fn no_account_takes_more_than_half() {
        let room = BodyLimiter::of(8 * PIECE, 2 * PIECE);
        let first = room.acquire(3 * PIECE, &tenant("a")).unwrap();
        assert!(room.acquire(2 * PIECE, &tenant("a")).is_err());
        let other = room.acquire(4 * PIECE, &tenant("b")).unwrap();
        assert!(room.acquire(2 * PIECE, &tenant("c")).is_err(), "all of it is taken but one");
        drop(first);
        assert_eq!(room.used_by.get(&AccountId::new("a")).map(|share| *share), None);
        room.acquire(4 * PIECE, &tenant("a")).unwrap();
        drop(other);
        assert_eq!((room.used.load(Ordering::Acquire), room.used_by.len()), (0, 0));
    }

    #[tokio::test]
    async fn large_answers_that_nobody_takes_are_bounded() {
        let room = BodyLimiter::of(200 << 10, 100 << 10);
        let router = Router::new()
            .route("/", get(async || "x".repeat(150 << 10)).post(async || "x".repeat(150 << 10)))
            .route("/small", get(async || "x"))
            .layer(from_fn_with_state(
                room.clone(),
                async |State(room), request: Request<Body>, next: Next| {
                    limit_bodies(&room, request, |request| next.run(request)).await
                },
            ));
        let ask = async |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            router.clone().call(request).await.unwrap()
        };
        // Each is larger than a share, and counts as one.
        let held = [ask(Method::GET, "/").await, ask(Method::GET, "/").await];
        assert!(held.iter().all(|answer| answer.status() == 200));
        assert_eq!(ask(Method::GET, "/").await.status(), 503);
        assert_eq!(ask(Method::GET, "/small").await.status(), 200);
        assert_eq!(ask(Method::POST, "/").await.status(), 200, "what was paid for is given");
        drop(held);
        assert_eq!(room.used.load(Ordering::Acquire), 0);
        assert_eq!(ask(Method::GET, "/").await.status(), 200);
    }

    #[test]
    fn what_is_made_of_a_body_counts_and_the_largest_passes_alone() {
        let room = BodyLimiter::of(8 * PIECE, 2 * PIECE);
        let permit = |name| {
            let permit = room.permit();
            permit.assign(&tenant(name));
            permit.grow(PIECE).unwrap();
            ValueRoom(Some(Arc::new(permit)))
        };
        let (first, second, other) = (permit("a"), permit("a"), permit("b"));
        assert!(second.take(2 * PIECE), "a share is four");
        assert!(!first.take(1), "another request of the account has the rest");
        drop(second);
        assert!(first.take(100 * PIECE) && first.take(100 * PIECE), "alone it passes");
        assert!(other.take(3 * PIECE), "others have theirs");
        drop((first, other));
        assert_eq!(room.used.load(Ordering::Acquire), 0);
    }

    #[test]
    fn what_was_refused_took_nothing() {
        let room = BodyLimiter::of(4 * PIECE, 4 * PIECE);
        let permit = room.permit();
        permit.assign(&tenant("a"));
        permit.grow(4 * PIECE).unwrap();
        assert!(permit.grow(1).is_err() && room.acquire(1, &tenant("b")).is_err());
        assert_eq!(room.used.load(Ordering::Acquire), 4);
        assert_eq!(room.used_by.get(&AccountId::new("b")).map_or(0, |share| *share), 0);
    }
}
