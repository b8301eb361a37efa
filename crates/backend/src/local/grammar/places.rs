//! Who may make a grammar now: few at once, and one of each owner.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Grammars that are made at once, for callers who wait.
const AT_ONCE: usize = 2;

/// The places for making grammars.
pub(super) struct GrammarPlaces {
    shared: Arc<Semaphore>,
    /// Those who have taken their place, or wait for it.
    owners: Mutex<HashMap<Option<String>, Arc<Semaphore>>>,
}

/// Two places that were taken.
pub(super) struct GrammarPlace {
    /// For as long as somebody waits for the grammar.
    pub(super) shared: OwnedSemaphorePermit,
    /// For as long as it is made, whether or not somebody still waits: nothing can stop what makes it.
    pub(super) own: OwnedSemaphorePermit,
}

impl GrammarPlaces {
    pub(super) fn new() -> GrammarPlaces {
        GrammarPlaces { shared: Arc::new(Semaphore::new(AT_ONCE)), owners: Mutex::default() }
    }

    /// Waits until that owner may make one.
    pub(super) async fn take(&self, owner: Option<&str>) -> Option<GrammarPlace> {
        let own = self.of(owner).acquire_owned().await.ok()?;
        let shared = Arc::clone(&self.shared).acquire_owned().await.ok()?;
        Some(GrammarPlace { shared, own })
    }

    fn of(&self, owner: Option<&str>) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        // A permit keeps its semaphore, so those that nothing else keeps are of nobody.
        owners.retain(|_, own| Arc::strong_count(own) > 1);
        let own = owners.entry(owner.map(str::to_owned)).or_insert_with(|| Arc::new(Semaphore::new(1)));
        Arc::clone(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn an_owner_has_one_place_until_its_grammar_is_made_and_others_have_theirs() {
        let places = GrammarPlaces::new();
        let GrammarPlace { shared, own } = places.take(Some("a")).await.unwrap();
        assert!(places.take(Some("a")).now_or_never().is_none());
        // Nobody waits for it any more, and it is still being made.
        drop(shared);
        assert!(places.take(Some("a")).now_or_never().is_none());
        let others = [places.take(Some("b")).now_or_never(), places.take(None).now_or_never()];
        assert!(others.iter().all(Option::is_some));
        assert!(places.take(Some("c")).now_or_never().is_none(), "so many at once");
        drop(others);
        drop(own);
        assert!(places.take(Some("a")).now_or_never().is_some());
        assert!(places.owners.lock().unwrap().len() <= 4);
        places.of(Some("d"));
        assert_eq!(places.owners.lock().unwrap().len(), 1, "nobody is kept");
    }
}
