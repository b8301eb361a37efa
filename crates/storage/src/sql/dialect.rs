//! Where the SQL of the two databases differs.

/// Which database a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SqlDialect {
    Sqlite,
    Postgres,
}

impl SqlDialect {
    /// Ends a `SELECT` whose rows nobody else may change until the transaction ends. `SQLite` has one writer at a time and
    /// needs no lock.
    pub(crate) fn for_update(self) -> &'static str {
        match self {
            SqlDialect::Sqlite => "",
            SqlDialect::Postgres => " FOR UPDATE",
        }
    }

    /// The same, without the rows that somebody else has locked.
    pub(crate) fn for_update_skip_locked(self) -> &'static str {
        match self {
            SqlDialect::Sqlite => "",
            SqlDialect::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// A join that begins with the table on its left. PostgreSQL's planner chooses that by itself.
    pub(crate) fn join_from_left(self) -> &'static str {
        match self {
            SqlDialect::Sqlite => "CROSS JOIN",
            SqlDialect::Postgres => "JOIN",
        }
    }
}
