//! CR-13: a caller that appends to a conversation may leave at any moment.

use super::super::ends_within;
use super::*;

const ITEMS: usize = 3;

/// Lengthens until one is not left; then each is there whole or not at all, and what was done says so.
async fn leave_at_every_poll(store: &dyn ConversationStore) {
    let made = conversation("a", 1);
    store.create(&made, &[], ROOM).await.unwrap();
    let mut left = 0;
    for round in 0..6 {
        let mut polls_max = 0;
        loop {
            let items = (0..ITEMS).map(|at| item(&format!("r{round}/p{polls_max}/{at}"))).collect();
            if ends_within(store.append(&more(&made, items, 2), EVER, ROOM), polls_max).await {
                break;
            }
            polls_max += 1;
        }
        left += polls_max;
        let there = names(store, &made).await;
        for whole in there.chunks(ITEMS) {
            let of = |name: &String| name.rsplit_once('/').unwrap().0.to_owned();
            assert_eq!(whole.len(), ITEMS);
            assert!(whole.iter().all(|name| of(name) == of(&whole[0])), "{there:?}");
        }
        assert!(there.last().unwrap().starts_with(&format!("r{round}/p{polls_max}/")));
    }
    assert!(left >= 6, "there were moments to leave at: {left}");
}

#[tokio::test]
async fn a_lengthening_in_sqlite_that_is_broken_off_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let database = sqlite(&folder.path().join("stint.db")).await;
    let store = SqlConversationStore::new(database.clone());
    leave_at_every_poll(&store).await;
    check(&store, counted_in_sqlite(&database).await).await;
}

#[tokio::test]
async fn a_lengthening_in_postgres_that_is_broken_off_is_whole_or_not_there() {
    let database = connect(&cluster().database()).await;
    let store = SqlConversationStore::new(database.clone());
    leave_at_every_poll(&store).await;
    check(&store, counted_in_postgres(&database).await).await;
}
