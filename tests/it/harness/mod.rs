//! What the tests share: a gateway in this process over scripted models, the real binary, callers, and the tools
//! that `make test-tools` installs.

pub(crate) mod alone;
mod answer;
pub(crate) mod authority;
pub(crate) mod chromium;
#[path = "../../postgres/cluster.rs"]
#[expect(dead_code, reason = "only the library's tests cut connections")]
pub(crate) mod cluster;
pub(crate) mod deployment;
pub(crate) mod emulators;
pub(crate) mod faultup;
pub(crate) mod hook;
pub(crate) mod issuer;
pub(crate) mod managed;
pub(crate) mod patience;
mod process;
pub(crate) mod tools;
mod upstream;
mod world;

pub(crate) use answer::Answer;
pub(crate) use chromium::{Chromium, View};
pub(crate) use cluster::ports::free_port;
pub(crate) use deployment::{Deployment, Says};
pub(crate) use managed::Managed;
pub(crate) use process::{Folder, Process};
pub(crate) use upstream::{Manner, Upstream};
pub(crate) use world::{Caller, Served, Stored, World, auto, model, tenant};
