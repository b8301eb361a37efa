//! What becomes of members of a request that the gateway gives no meaning to.

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
pub enum Treatment {
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
    /// What the endpoint takes at which a thought is resumed from its tokens; nothing where there is no such endpoint.
    pub resumed: Option<&'static [&'static str]>,
}

/// Members that mean something to some servers and change no answer: left out where they are not documented.
const HINTS: [&str; 1] = ["cache_salt"];

impl MemberRules {
    /// What becomes of the member of that name.
    pub fn treat(&self, name: &str) -> Treatment {
        match self.unknown {
            _ if self.documented.contains(&name) => Treatment::Pass,
            _ if HINTS.contains(&name) => Treatment::Drop,
            UnknownMembers::Pass => Treatment::Pass,
            UnknownMembers::Drop => Treatment::Drop,
            UnknownMembers::Refuse => Treatment::Refuse,
        }
    }

    /// True where a thought can be resumed though this member is wanted: the endpoint for that takes it.
    pub(super) fn resumes_with(&self, name: &str) -> bool {
        let is_sent = self.treat(name) == Treatment::Pass;
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
            (UnknownMembers::Pass, Treatment::Pass),
            (UnknownMembers::Drop, Treatment::Drop),
            (UnknownMembers::Refuse, Treatment::Refuse),
        ] {
            let rules = MemberRules { unknown, ..RAW };
            assert_eq!((rules.treat("grammar"), rules.treat("surprise")), (Treatment::Pass, other));
        }
    }

    #[test]
    fn a_hint_is_left_out_where_it_is_not_documented() {
        let salted = MemberRules { documented: &["cache_salt"], ..MemberRules::default() };
        assert_eq!(salted.treat("cache_salt"), Treatment::Pass);
        assert_eq!(RAW.treat("cache_salt"), Treatment::Drop);
    }

    #[test]
    fn a_thought_is_resumed_only_with_what_that_endpoint_takes() {
        assert!(RAW.resumes_with("min_p") && !RAW.resumes_with("surprise"));
        assert!(MemberRules { unknown: UnknownMembers::Drop, ..RAW }.resumes_with("surprise"));
        assert!(!MemberRules { resumed: None, ..RAW }.resumes_with("min_p"));
    }
}
