//! The page of the admin API, in a real browser: what its panels show of a known load, and who may see it.

mod access;
mod bounds;
mod load;
mod panels;
mod pictures;
