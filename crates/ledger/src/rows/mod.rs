//! What the journal holds, and sums of it: plain rows that name nothing else of the ledger.

mod abandon_policy;
mod abandoned;
mod account_spend;
mod amounts;
mod entry;
mod episode;
mod model_spend;
mod scope;
mod span;
mod usage;
mod usage_sums;

pub use abandon_policy::{AbandonPolicy, SpendRate};
pub(crate) use abandoned::abandoned_charge;
pub use account_spend::AccountSpend;
pub use amounts::Amounts;
pub use entry::{
    DispatchEntry, ExtensionEntry, JournalEntry, MeterEntry, ResolutionEntry, ResolutionKind,
    SettlementDetail,
};
pub use episode::{EpisodeBalance, EpisodeUsage, StepReservation};
pub use model_spend::{ModelSpend, SpendByModel};
pub use scope::RequestScope;
pub use span::{QUARTER_HOUR_MS, RollupSpan};
pub use usage::{GroupBy, GroupUsage, UsageGroup, UsageQuery};
pub use usage_sums::UsageSums;
