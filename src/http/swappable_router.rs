//! The router behind a listener, which a reload replaces while it is served. A request or connection keeps to the end what was in
//! force when it began.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;

use super::Settings;
use super::tls::TlsIdentity;

/// The router behind a listener, and how it speaks TLS, where it does. Clones share them.
#[derive(Debug, Clone)]
pub struct SwappableRouter {
    served: Arc<ArcSwap<ServedRouter>>,
    identity: Arc<ArcSwapOption<TlsIdentity>>,
}

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
        let served = Arc::new(ArcSwap::from_pointee(ServedRouter { settings, router }));
        SwappableRouter { served, identity: Arc::default() }
    }

    /// Replaces the router and the settings, for requests and connections that begin from now on.
    pub fn replace(&self, settings: Settings, router: Router) {
        self.served.store(Arc::new(ServedRouter { settings, router }));
    }

    /// How connections that begin from now on speak TLS; not at all, where this is absent.
    pub fn set_identity(&self, identity: Option<Arc<TlsIdentity>>) {
        self.identity.store(identity);
    }

    /// How a connection that begins now speaks TLS.
    pub fn identity(&self) -> Option<Arc<TlsIdentity>> {
        self.identity.load_full()
    }

    /// The router for a request that begins now.
    pub(super) fn router(&self) -> Router {
        self.served.load().router.clone()
    }

    /// The router and settings in force.
    pub(super) fn current(&self) -> Arc<ServedRouter> {
        self.served.load_full()
    }
}
