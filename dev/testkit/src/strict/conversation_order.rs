//! Who speaks when. Every wire has its own words for it and the same rules.

use super::CheckResult;
use super::body_value::BodyValue;

/// A call, or the result of one, by what the wire tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallIdentity<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
}

impl CallIdentity<'_> {
    /// Whether a result belongs to this call: by the id where there is one, and by the name where both tell it.
    fn has_result(&self, result: &CallIdentity<'_>) -> bool {
        let same_name = self.name.is_none() || result.name.is_none() || self.name == result.name;
        self.id == result.id && same_name
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
}

/// Follows a conversation: it begins with the user, every call has exactly one result before anything else is said, no
/// result comes without a call, the model does not speak twice, and does not have the last word.
#[derive(Debug, Default)]
pub(super) struct ConversationOrder<'a> {
    last: Option<Speaker>,
    /// Calls without a result.
    open: Vec<CallIdentity<'a>>,
    /// Calls of the last answer that have one.
    settled: Vec<CallIdentity<'a>>,
}

impl<'a> ConversationOrder<'a> {
    /// The user says something that is no result.
    pub(super) fn user(&mut self, at: &BodyValue<'_>) -> CheckResult {
        self.nothing_open(at)?;
        self.last = Some(Speaker::User);
        Ok(())
    }

    /// The model begins an answer.
    pub(super) fn answer(&mut self, at: &BodyValue<'_>) -> CheckResult {
        self.nothing_open(at)?;
        match self.last {
            None => return at.fail("the conversation begins with the model"),
            Some(Speaker::Model) => return at.fail("the model speaks twice"),
            Some(Speaker::User) => {}
        }
        self.last = Some(Speaker::Model);
        self.settled.clear();
        Ok(())
    }

    /// The answer calls a tool.
    pub(super) fn call(&mut self, at: &BodyValue<'_>, call: CallIdentity<'a>) -> CheckResult {
        let is_known = call.id.is_some() && self.open.iter().any(|open| open.id == call.id);
        at.require(!is_known, "two calls have the same id")?;
        self.open.push(call);
        Ok(())
    }

    pub(super) fn result(&mut self, at: &BodyValue<'_>, result: CallIdentity<'a>) -> CheckResult {
        let Some(place) = self.open.iter().position(|call| call.has_result(&result)) else {
            let again = self.settled.iter().any(|call| call.has_result(&result));
            return at.fail(if again { "a second result for a call" } else { "a result without its call" });
        };
        self.settled.push(self.open.remove(place));
        self.last = Some(Speaker::User);
        Ok(())
    }

    pub(super) fn end(&self, at: &BodyValue<'_>) -> CheckResult {
        self.nothing_open(at)?;
        at.require(self.last == Some(Speaker::User), "the conversation ends with the model")
    }

    fn nothing_open(&self, at: &BodyValue<'_>) -> CheckResult {
        let open = self.open.first().and_then(|call| call.id.or(call.name));
        match open {
            Some(call) => at.fail(format!("the call {call:?} has no result before this")),
            None => Ok(()),
        }
    }
}
