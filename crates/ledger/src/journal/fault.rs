//! Why a database does not work, in few words.

/// Why a database does not work. Its words name no file, address or account, so anybody may read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseFault {
    /// There is no room for what is to be written.
    DiskFull,
    /// The disk fails.
    DiskFailed,
    /// Nothing may be written.
    ReadOnly,
    /// What the file has is no database any more.
    Damaged,
    /// The file that is open is no longer at its path.
    FileGone,
    /// Somebody else holds it for too long.
    Busy,
    /// No connection to it can be made, or it was cut.
    Unreachable,
    /// It does not answer in time.
    Silent,
    /// It refuses our account.
    LoginRefused,
    /// It has as many connections as it takes.
    NoConnectionFree,
    /// We got no connection in time. Either none could be made, or all of ours were in use: the one that waits cannot tell.
    NoConnectionInTime,
}

impl DatabaseFault {
    /// The words.
    pub fn as_str(self) -> &'static str {
        match self {
            DatabaseFault::DiskFull => "the disk is full",
            DatabaseFault::DiskFailed => "the disk cannot be read or written",
            DatabaseFault::ReadOnly => "it may not be written to",
            DatabaseFault::Damaged => "its file is damaged",
            DatabaseFault::FileGone => "its file was deleted or replaced",
            DatabaseFault::Busy => "something else holds it",
            DatabaseFault::Unreachable => "it cannot be reached",
            DatabaseFault::Silent => "it does not answer in time",
            DatabaseFault::LoginRefused => "it refuses our login",
            DatabaseFault::NoConnectionFree => "it has no connection free",
            DatabaseFault::NoConnectionInTime => {
                "no connection in time: it cannot be reached, or takes no more, or all of ours are in use"
            }
        }
    }
}
