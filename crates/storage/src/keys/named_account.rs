//! Whether the database names an account, for those who only read it.

use crate::sql::{SqlConnection, Statement};
use stint_types::units::AccountId;

const FIND: &str = "\
    SELECT 1 AS found FROM (SELECT account FROM keys UNION ALL SELECT account FROM account_terms) AS named \
    WHERE account = $1 OR substr(account, 1, length($1) + 1) = $1 || '/' LIMIT 1";

/// True if an account, or one below it, has or had a key, or has terms.
pub(crate) async fn has_account(
    account: &AccountId,
    connection: &mut dyn SqlConnection,
) -> Result<bool, sqlx::Error> {
    Ok(connection.fetch_optional(Statement::new(FIND).bind(account)).await?.is_some())
}
