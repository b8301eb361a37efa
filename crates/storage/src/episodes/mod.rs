//! The store of agents' episodes: the tables `episodes`, `episode_raises` and `episode_links` of either database.

mod limits_row;
mod links;
mod records;
mod store;

pub(super) use store::SqlEpisodeStore;
