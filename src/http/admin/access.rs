//! Who asks the admin API, and what each role may there.

use std::sync::Arc;

use axum::http::Method;

use stint_types::tenant::{AdminRole, Directory, DirectoryEditor, EditorAuthority};
use stint_types::units::AccountId;

/// Who asks, as `guard` found it.
#[derive(Debug, Clone)]
pub(super) struct Admin {
    /// As the audit log calls them.
    pub(super) name: Arc<str>,
    pub(super) role: AdminRole,
    /// The account of the key that they have the role by, if it is one of ours.
    pub(super) key: Option<AccountId>,
}

/// The role that a method of a path takes. What is not listed takes the highest.
pub(super) fn required_role(method: &Method, path: &str) -> AdminRole {
    const OF_KEYS: [&str; 3] = ["/admin/keys", "/admin/accounts", "/admin/import"];
    let is_below =
        |base: &str| path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match *method {
        Method::GET | Method::HEAD => AdminRole::Read,
        _ if OF_KEYS.into_iter().any(is_below) => AdminRole::Keys,
        _ => AdminRole::All,
    }
}

impl Admin {
    /// The directory in their hands. Nobody gives a role above their own, takes one away, or has the secret of a key with one.
    pub(super) fn editor<'d>(&'d self, directory: &'d Directory) -> DirectoryEditor<'d> {
        let by_itself = EditorAuthority::Role(self.role);
        let authority = self.key.as_ref().map_or(by_itself, EditorAuthority::Key);
        directory.by(&self.name).with_authority(authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_shows_takes_the_lowest_role_and_what_is_not_of_keys_the_highest() {
        let check =
            |method: Method, path: &str, role| assert_eq!(required_role(&method, path), role, "{path}");
        check(Method::GET, "/admin/keys", AdminRole::Read);
        check(Method::GET, "/admin/audit", AdminRole::Read);
        check(Method::POST, "/admin/keys", AdminRole::Keys);
        check(Method::POST, "/admin/keys/key_1/rotate", AdminRole::Keys);
        check(Method::PUT, "/admin/accounts/acme/research", AdminRole::Keys);
        check(Method::POST, "/admin/import", AdminRole::Keys);
        check(Method::POST, "/admin/reload", AdminRole::All);
        check(Method::POST, "/admin/episodes/r/raise", AdminRole::All);
        check(Method::POST, "/admin/keysmith", AdminRole::All);
        check(Method::POST, "/admin/what-comes-later", AdminRole::All);
    }
}
