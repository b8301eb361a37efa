//! Tells the API's front page that this page is beside it.

/// Among a request's extensions where the API's listener has the page, so that there is something to link to.
#[derive(Debug, Clone, Copy)]
pub struct PageLink;
