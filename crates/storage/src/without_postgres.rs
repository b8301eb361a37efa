//! What stands for PostgreSQL in a build without it.

use stint_ledger::ChangeNotice;

/// The changes that other processes notify us of. A database without a server has none, so nobody has one of these.
#[derive(Debug)]
pub enum ChangeListener {}

impl ChangeListener {
    /// Never called.
    #[expect(clippy::unused_async, reason = "as it is where there are changes")]
    pub async fn next(&mut self) -> ChangeNotice {
        match *self {}
    }
}
