//! How a response can fail to be an answer.

/// No answer has more parts.
pub(crate) const MAX_ANSWER_BLOCKS: u32 = 10_000;
/// No answer has more to say, written as JSON. It leaves room in the journal, where a whole answer is one event.
pub(crate) const MAX_ANSWER_BYTES: usize = 6 << 20;

/// Why a response is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StreamError {
    /// The response ended too early.
    #[error("the response ended before the answer did")]
    CutOff,
    /// The server told of an error instead of going on.
    #[error("the server reports an error: {message}")]
    Server {
        /// What it calls the error; the general name first, if there are two.
        kind: Option<String>,
        /// What it says about it.
        message: String,
    },
    /// The data of an event is no JSON: its beginning.
    #[error("the server sent something that is not JSON: {0}")]
    NotJson(String),
    /// The stream is no UTF-8.
    #[error("the server sent something that is not text")]
    NotText,
    /// More came than any answer needs.
    #[error("the answer is too large: no answer may have more than {} MB or {} parts", MAX_ANSWER_BYTES >> 20, MAX_ANSWER_BLOCKS)]
    TooLarge,
    /// Joining the two would run calls twice that the model made once.
    #[error("the server began another answer within the same response: {0}")]
    Restarted(&'static str),
    /// Something came instead of a stream: its beginning.
    #[error("what came is no stream of events, but begins with {0:?}")]
    NotAStream(String),
}
