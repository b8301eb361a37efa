//! What happens to members of a request that have no meaning to the gateway.

/// What a backend does with members that nobody here knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownMembers {
    /// It is sent them.
    Pass,
    /// It is not sent them, and serves the request without.
    Drop,
    /// It serves no request that has one.
    #[default]
    Refuse,
}

/// What becomes of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberAction {
    /// It is sent.
    Pass,
    /// It is left out.
    Drop,
    /// No request that has it is served.
    Refuse,
}

/// What a model's backend does with members that the gateway gives no meaning to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemberRules {
    /// What it does with those that nobody here knows.
    pub unknown: UnknownMembers,
    /// Those that its API documents. They are sent, whatever holds for others.
    pub documented: &'static [&'static str],
    /// What the endpoint takes at which a thought is resumed from its tokens; nothing if there is no such endpoint.
    pub resumed: Option<&'static [&'static str]>,
}

/// Members that mean something to some servers and change no answer: left out where they are not documented.
const HINTS: [&str; 1] = ["cache_salt"];

impl MemberRules {
    /// What becomes of the member of that name.
    pub fn action_for(&self, name: &str) -> MemberAction {
        match self.unknown {
            _ if self.documented.contains(&name) => MemberAction::Pass,
            _ if HINTS.contains(&name) => MemberAction::Drop,
            UnknownMembers::Pass => MemberAction::Pass,
            UnknownMembers::Drop => MemberAction::Drop,
            UnknownMembers::Refuse => MemberAction::Refuse,
        }
    }

    /// True if a thought can be resumed though this member is wanted: the endpoint for that takes it.
    pub(super) fn allows_resume(&self, name: &str) -> bool {
        // What stands in a message is its template's, and not the endpoint's.
        let is_sent = self.action_for(name) == MemberAction::Pass && !name.starts_with("messages[");
        !is_sent || self.resumed.is_some_and(|taken| taken.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: MemberRules = MemberRules {
        unknown: UnknownMembers::Pass,
        documented: &["grammar"],
        resumed: Some(&["grammar", "min_p"]),
    };

    #[test]
    fn documented_members_pass_whatever_becomes_of_others() {
        for (unknown, other) in [
            (UnknownMembers::Pass, MemberAction::Pass),
            (UnknownMembers::Drop, MemberAction::Drop),
            (UnknownMembers::Refuse, MemberAction::Refuse),
        ] {
            let rules = MemberRules { unknown, ..RAW };
            assert_eq!(
                (rules.action_for("grammar"), rules.action_for("surprise")),
                (MemberAction::Pass, other)
            );
        }
    }

    #[test]
    fn a_hint_is_left_out_where_it_is_not_documented() {
        let salted = MemberRules { documented: &["cache_salt"], ..MemberRules::default() };
        assert_eq!(salted.action_for("cache_salt"), MemberAction::Pass);
        assert_eq!(RAW.action_for("cache_salt"), MemberAction::Drop);
    }

    #[test]
    fn a_thought_is_resumed_only_with_what_that_endpoint_takes() {
        assert!(RAW.allows_resume("min_p") && !RAW.allows_resume("surprise"));
        assert!(MemberRules { unknown: UnknownMembers::Drop, ..RAW }.allows_resume("surprise"));
        assert!(!MemberRules { resumed: None, ..RAW }.allows_resume("min_p"));
    }
}
