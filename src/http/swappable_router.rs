//! What stands behind a listener. It may be changed while it is served: whatever begins goes by what is there then, and to
//! its end, whatever comes after.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;

use super::Settings;

/// The way in, and what is behind it now. Clones are the same door.
#[derive(Debug, Clone)]
pub struct SwappableRouter(Arc<ArcSwap<ServedRouter>>);

/// What is behind a door at one moment.
#[derive(Debug)]
pub(super) struct ServedRouter {
    /// What connections keep to that begin now.
    pub(super) settings: Settings,
    router: Router,
}

impl SwappableRouter {
    /// A door with this behind it.
    pub fn new(settings: Settings, router: Router) -> SwappableRouter {
        SwappableRouter(Arc::new(ArcSwap::from_pointee(ServedRouter { settings, router })))
    }

    /// Puts something else behind it: requests that begin from now on get there, and connections that begin keep to these
    /// settings.
    pub fn replace(&self, settings: Settings, router: Router) {
        self.0.store(Arc::new(ServedRouter { settings, router }));
    }

    /// What answers a request that begins now.
    pub(super) fn router(&self) -> Router {
        self.0.load().router.clone()
    }

    /// What there is now.
    pub(super) fn current(&self) -> Arc<ServedRouter> {
        self.0.load_full()
    }
}
