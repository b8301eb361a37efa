//! Holds a backend back until a test releases it.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// A gate that every piece passes. Clones are the same gate.
#[derive(Debug, Clone)]
pub struct PieceGate(Arc<Semaphore>);

impl PieceGate {
    /// A gate that lets nothing through yet.
    pub fn shut() -> PieceGate {
        PieceGate(Arc::new(Semaphore::new(0)))
    }

    /// Lets so many more through.
    pub fn let_through(&self, count: usize) {
        self.0.add_permits(count);
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.0.close();
    }

    pub(super) async fn pass(&self) {
        // A closed semaphore is an open gate.
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}
