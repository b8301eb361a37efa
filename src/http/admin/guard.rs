//! Who may use the admin API.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::auth;
use crate::http::called_host::{LOOPBACK, called_host};
use crate::http::error::{ApiError, codes};
use crate::oidc::KeyWait;
use stint_types::tenant::{AdminRole, hash_key};

use super::access::{Admin, required_role};
use super::state::AdminState;

/// Looks at the host and the token before anything else is looked at.
pub(super) async fn guard(
    State(admin): State<Arc<AdminState>>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    // The host first: a page of another site learns nothing of tokens.
    let checked = match check_host(&admin, &request) {
        Ok(()) => authorize(&admin, request.headers()).await,
        Err(problem) => Err(problem),
    };
    match checked.and_then(|caller| check_role(caller, &request)) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn check_role(caller: Admin, request: &Request<Body>) -> Result<Admin, ApiError> {
    let required = required_role(request.method(), request.uri().path());
    if caller.role < required {
        let (needs, has) = (required.as_str(), caller.role.as_str());
        let message = format!("this takes the role \"{needs}\" on the admin API, and this key has \"{has}\"");
        return Err(ApiError::forbidden(&message).with_code(codes::ROLE_TOO_LOW));
    }
    Ok(caller)
}

/// By what name it is called: that of another site may be one that resolved its own name to this machine's address.
pub(super) fn check_host(admin: &AdminState, request: &Request<Body>) -> Result<(), ApiError> {
    if !called_host(request).is_some_and(|host| is_known(admin, &host)) {
        return Err(ApiError::forbidden(
            "the admin API is not called by that host name; add it to hosts in [admin]",
        )
        .with_code(codes::BAD_HOST));
    }
    Ok(())
}

/// The token, or a key with a role, or a token of an issuer with one. The answer to a key without it says so: its owner is known.
async fn authorize(admin: &AdminState, headers: &HeaderMap) -> Result<Admin, ApiError> {
    let presented = auth::presented_key(headers)?;
    let secret = presented
        .filter(|secret| !secret.is_empty())
        .ok_or_else(|| auth::missing_or_invalid_key(presented))?;
    if hash_key(secret).matches(&admin.access.token.hash()) {
        return Ok(Admin { name: admin.token_holder.into(), role: AdminRole::All, key: None });
    }
    let keys = admin.directory.keys();
    let (tenant, is_own) =
        match auth::admit_token(&keys, admin.tokens.as_ref(), headers, KeyWait::Shortly).await? {
            Some(tenant) => (tenant, false),
            None => (keys.find(Some(secret), admin.now()).ok_or_else(auth::invalid_key)?, true),
        };
    // Where everybody may ask, nobody has shown a key.
    match (tenant.access.role, tenant.key) {
        (Some(role), Some(_)) => {
            let key = is_own.then(|| tenant.account.clone());
            Ok(Admin { name: tenant.account.as_str().into(), role, key })
        }
        (None, Some(_)) => {
            Err(ApiError::forbidden("this key may not use the admin API").with_code(codes::NOT_ADMIN))
        }
        (_, None) => Err(auth::invalid_key()),
    }
}

fn is_known(admin: &AdminState, host: &str) -> bool {
    let own = admin.access.listen.ip();
    LOOPBACK.contains(&host)
        || admin.access.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
        || (!own.is_unspecified() && host.trim_matches(['[', ']']).parse() == Ok(own))
}
