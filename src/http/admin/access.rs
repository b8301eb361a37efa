//! Who asks the admin API, and what each role may there.

use std::sync::Arc;

use axum::http::Method;

use crate::http::error::{ApiError, codes};
use stint_types::tenant::{AdminRole, DeclaredTenants, DirectorySnapshot, KeyId};

/// Who asks, as `guard` found it.
#[derive(Debug, Clone)]
pub(super) struct Admin {
    /// As the audit log calls them.
    pub(super) name: Arc<str>,
    pub(super) role: AdminRole,
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
    /// Whether they may give this role, take it away, or have the secret of a key with it.
    ///
    /// # Errors
    /// 403 where it is higher than their own.
    pub(super) fn check(&self, role: Option<AdminRole>) -> Result<(), ApiError> {
        match role {
            Some(role) if role > self.role => {
                let message = format!(
                    "a key with the role \"{}\" is beyond yours, which is \"{}\": ask with one that has it",
                    role.as_str(),
                    self.role.as_str()
                );
                Err(ApiError::forbidden(&message).with_code(codes::ROLE_TOO_LOW))
            }
            _ => Ok(()),
        }
    }

    /// The same for the role that a key has.
    pub(super) fn check_key(&self, directory: &DirectorySnapshot, id: KeyId) -> Result<(), ApiError> {
        // One that is not there is refused in the directory's words.
        self.check(directory.key(id).ok().and_then(|key| key.access.role))
    }

    /// The same for all keys that are to be imported, and for those of the same accounts that are there.
    pub(super) fn check_import(
        &self,
        directory: &DirectorySnapshot,
        wanted: &DeclaredTenants,
    ) -> Result<(), ApiError> {
        let keys = directory.keys();
        for tenant in &wanted.tenants {
            self.check(tenant.access.role)?;
            let mut same =
                keys.iter().filter(|key| key.terms.account == tenant.account && key.revoked.is_none());
            same.try_for_each(|key| self.check(key.access.role))?;
        }
        Ok(())
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
