//! Layers around routes that cost little for each request: axum's `from_fn` copies all that is behind it, twice, and boxes it.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use axum::routing::Route;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;

/// What is done around a route. Clones do the same.
pub(super) trait Around: Clone + Send + Sync + 'static {
    /// The answer to a request, by what is behind this or instead of it.
    fn answer(&self, request: Request<Body>, next: RouteBehind<'_>) -> impl Future<Output = Response> + Send;
}

/// The layer that does so.
#[derive(Debug, Clone)]
pub(super) struct AroundLayer<W>(pub(super) W);

/// A route with that around it. Clones share both.
#[derive(Debug)]
pub(super) struct AroundRoute<W>(Arc<(W, Route)>);

/// What is behind a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteBehind<'r>(&'r Route);

impl RouteBehind<'_> {
    /// Its answer.
    pub(super) async fn answer(self, request: Request<Body>) -> Response {
        match self.0.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

impl<W: Around> Layer<Route> for AroundLayer<W> {
    type Service = AroundRoute<W>;

    fn layer(&self, route: Route) -> AroundRoute<W> {
        AroundRoute(Arc::new((self.0.clone(), route)))
    }
}

impl<W> Clone for AroundRoute<W> {
    fn clone(&self) -> AroundRoute<W> {
        AroundRoute(self.0.clone())
    }
}

impl<W: Around> Service<Request<Body>> for AroundRoute<W> {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A route always is.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = self.0.clone();
        async move {
            let (around, route) = &*shared;
            Ok(around.answer(request, RouteBehind(route)).await)
        }
        .boxed()
    }
}
