//! Notes that Helve adds to the conversation: what the model has to know besides what people say and tools return.
//!
//! A note goes where it first matters and stays there (requests only grow at their end).

use std::path::PathBuf;

use helve_protocol::NoteTopic;

/// A note, with the topic under which it is recorded.
pub(crate) type TopicNote = (NoteTopic, String);

/// The topics of notes about the world outside, which a recorded session has on its tape.
pub(crate) const OUTSIDE_NOTE_TOPICS: [NoteTopic; 3] =
    [NoteTopic::ChangedOutside, NoteTopic::Folders, NoteTopic::Resumed];

const RESUMED_NOTE: &str = "The session goes on in a new process: commands begin in the project's folder again, jobs have \
                            ended, and a file has to be read again before it is replaced.";

/// Asks the model to go on after it has had the last word.
pub(crate) fn go_on() -> TopicNote {
    (NoteTopic::GoOn, "Go on.".to_owned())
}

/// Reminds a model that has only read for some steps.
pub(crate) fn read_loop(steps: u32) -> TopicNote {
    let text = format!(
        "You have only read for {steps} steps. If you know enough, act on it now; if not, say what you are looking for."
    );
    (NoteTopic::ReadLoop, text)
}

/// Tells what the user or another program did to the files.
pub(crate) fn changed_outside(changes: &str) -> TopicNote {
    let text = format!(
        "Since your last request, not your calls but the user or a running program changed files:\n\n{changes}"
    );
    (NoteTopic::ChangedOutside, text)
}

/// Tells which folders there are besides the project.
pub(crate) fn added_folders(folders: &[PathBuf]) -> TopicNote {
    let added: Vec<String> = folders.iter().skip(1).map(|folder| folder.display().to_string()).collect();
    (NoteTopic::Folders, format!("Besides the project, you may work in these folders: {}", added.join(", ")))
}

/// Tells that another process goes on with the session.
pub(crate) fn resumed() -> TopicNote {
    (NoteTopic::Resumed, RESUMED_NOTE.to_owned())
}
