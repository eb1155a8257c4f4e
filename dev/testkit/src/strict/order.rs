//! Who speaks when. Every wire has its own words for it and the same rules.

use super::Checked;
use super::at::At;

/// A call, or the result of one, by what the wire tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
}

impl Call<'_> {
    /// Whether a result belongs to this call: by the id where there is one, and by the name where both tell it.
    fn has_result(&self, result: &Call<'_>) -> bool {
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
pub(super) struct Order<'a> {
    last: Option<Speaker>,
    /// Calls without a result.
    open: Vec<Call<'a>>,
    /// Calls of the last answer that have one.
    settled: Vec<Call<'a>>,
}

impl<'a> Order<'a> {
    /// The user says something that is no result.
    pub(super) fn user(&mut self, at: &At<'_>) -> Checked {
        self.nothing_open(at)?;
        self.last = Some(Speaker::User);
        Ok(())
    }

    /// The model begins an answer.
    pub(super) fn answer(&mut self, at: &At<'_>) -> Checked {
        self.nothing_open(at)?;
        match self.last {
            None => return at.wrong("the conversation begins with the model"),
            Some(Speaker::Model) => return at.wrong("the model speaks twice"),
            Some(Speaker::User) => {}
        }
        self.last = Some(Speaker::Model);
        self.settled.clear();
        Ok(())
    }

    /// The answer calls a tool.
    pub(super) fn call(&mut self, at: &At<'_>, call: Call<'a>) -> Checked {
        let is_known = call.id.is_some() && self.open.iter().any(|open| open.id == call.id);
        at.must(!is_known, "two calls have the same id")?;
        self.open.push(call);
        Ok(())
    }

    pub(super) fn result(&mut self, at: &At<'_>, result: Call<'a>) -> Checked {
        let Some(place) = self.open.iter().position(|call| call.has_result(&result)) else {
            let again = self.settled.iter().any(|call| call.has_result(&result));
            return at.wrong(if again { "a second result for a call" } else { "a result without its call" });
        };
        self.settled.push(self.open.remove(place));
        self.last = Some(Speaker::User);
        Ok(())
    }

    pub(super) fn end(&self, at: &At<'_>) -> Checked {
        self.nothing_open(at)?;
        at.must(self.last == Some(Speaker::User), "the conversation ends with the model")
    }

    fn nothing_open(&self, at: &At<'_>) -> Checked {
        let open = self.open.first().and_then(|call| call.id.or(call.name));
        match open {
            Some(call) => at.wrong(format!("the call {call:?} has no result before this")),
            None => Ok(()),
        }
    }
}
