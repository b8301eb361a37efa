//! The router behind a listener, which a reload replaces while it is served. A request or connection keeps to the end what was in
//! force when it began.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;

use super::Settings;

/// The router behind a listener. Clones share it.
#[derive(Debug, Clone)]
pub struct SwappableRouter(Arc<ArcSwap<ServedRouter>>);

/// A router, and the settings for connections to it.
#[derive(Debug)]
pub(super) struct ServedRouter {
    /// For connections that begin now.
    pub(super) settings: Settings,
    router: Router,
}

impl SwappableRouter {
    /// One that begins with this router.
    pub fn new(settings: Settings, router: Router) -> SwappableRouter {
        SwappableRouter(Arc::new(ArcSwap::from_pointee(ServedRouter { settings, router })))
    }

    /// Replaces the router and the settings, for requests and connections that begin from now on.
    pub fn replace(&self, settings: Settings, router: Router) {
        self.0.store(Arc::new(ServedRouter { settings, router }));
    }

    /// The router for a request that begins now.
    pub(super) fn router(&self) -> Router {
        self.0.load().router.clone()
    }

    /// The router and settings in force.
    pub(super) fn current(&self) -> Arc<ServedRouter> {
        self.0.load_full()
    }
}
