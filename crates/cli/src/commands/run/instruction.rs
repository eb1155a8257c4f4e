//! What the model is to do: words, files, images and what is piped in.

use std::fs;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helve_agent::Session;
use helve_protocol::{FilePart, MessagePart, TextPart};

use crate::args::RunCommandArgs;
use crate::console;
use crate::failure::CliFailure;
use crate::setup::CliSetup;
use crate::text;
use crate::wiring::session_failure;

/// A picture that is larger is refused by every provider.
const MAX_ATTACHMENT_BYTES: usize = 20 << 20;
/// What people pipe in is text for a model, not a disk.
const MAX_PIPED_BYTES: u64 = 8 << 20;

/// Whoever pipes nothing in and does not end it is told after this time.
const PIPE_HINT_DELAY: Duration = Duration::from_secs(3);

/// What was asked, before there is a session.
pub(super) struct RunInstruction {
    text: String,
    files: Vec<FileAttachment>,
}

/// A picture or a document, as models take it.
pub(in crate::commands) struct FileAttachment {
    pub(in crate::commands) name: String,
    pub(in crate::commands) media_type: &'static str,
    pub(in crate::commands) content: Vec<u8>,
}

impl RunInstruction {
    pub(super) fn of(text: &str) -> RunInstruction {
        RunInstruction { text: text.to_owned(), files: Vec::new() }
    }

    /// The instruction file, the words of the command line, and what is piped in, with blank lines between.
    pub(super) fn read(
        options: &RunCommandArgs,
        setup: &CliSetup,
        mut takes_stdin: bool,
    ) -> Result<RunInstruction, CliFailure> {
        let mut texts = Vec::new();
        if let Some(file) = &options.instruction_file {
            let from_stdin = file.as_os_str() == "-";
            takes_stdin &= !from_stdin;
            let read = if from_stdin { Ok(piped()?) } else { fs::read_to_string(setup.cwd.join(file)) };
            texts.push(read.map_err(|error| {
                let what = format!("the instruction file {} can't be read", text::path(file));
                CliFailure::usage(what, error, "Check the path; it must be a text file.")
            })?);
        }
        texts.push(options.prompt.join(" "));
        if takes_stdin && !std::io::stdin().is_terminal() {
            texts.push(piped()?);
        }
        let said: Vec<&str> =
            texts.iter().map(|text| text.trim_end()).filter(|text| !text.trim().is_empty()).collect();
        let files: Result<_, _> =
            options.image.iter().map(|image| read_attachment(&setup.cwd.join(image), image)).collect();
        Ok(RunInstruction { text: said.join("\n\n"), files: files? })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.files.is_empty()
    }

    /// The message, with its files kept beside the session's log.
    pub(super) fn parts(self, session: &Session) -> Result<Vec<MessagePart>, CliFailure> {
        let text = Some(self.text).filter(|text| !text.is_empty());
        let mut parts: Vec<MessagePart> =
            text.map(|text| MessagePart::Text(TextPart::said(text))).into_iter().collect();
        for FileAttachment { name, media_type, content } in self.files {
            let content = session.keep(&content).map_err(|error| session_failure(&error))?;
            parts.push(MessagePart::File(FilePart { name, media_type: media_type.to_owned(), content }));
        }
        Ok(parts)
    }
}

fn piped() -> Result<String, CliFailure> {
    let wrong = |why: String| {
        CliFailure::usage("the piped input can't be used", why, "Pipe in text, and not too much.")
    };
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    std::thread::spawn(move || {
        std::thread::sleep(PIPE_HINT_DELAY);
        if !is_done.load(Ordering::SeqCst) {
            console::print_to_stderr("waiting for the piped input to end; leave it out with </dev/null");
        }
    });
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(MAX_PIPED_BYTES + 1).read_to_end(&mut bytes);
    done.store(true, Ordering::SeqCst);
    read.map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > MAX_PIPED_BYTES {
        return Err(wrong(format!("it is more than {}", text::bytes(MAX_PIPED_BYTES))));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))
}

pub(in crate::commands) fn read_attachment(path: &Path, shown: &Path) -> Result<FileAttachment, CliFailure> {
    let wrong = |why: String| {
        let what = format!("{} can't be shown to the model", text::path(shown));
        CliFailure::usage(what, why, "Give a PNG, JPEG, GIF, WebP or PDF file.")
    };
    let unread = |error: std::io::Error| {
        CliFailure::usage(format!("{} can't be read", text::path(shown)), error, "Check the path.")
    };
    let file = fs::File::open(path).map_err(unread)?;
    let mut content = Vec::new();
    file.take(MAX_ATTACHMENT_BYTES as u64 + 1).read_to_end(&mut content).map_err(unread)?;
    if content.len() > MAX_ATTACHMENT_BYTES {
        return Err(wrong(format!("it has more than {}", text::bytes(MAX_ATTACHMENT_BYTES as u64))));
    }
    let media_type =
        media_type(&content).ok_or_else(|| wrong("it is none of the kinds that models see".to_owned()))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let fitted = helve_tools::fit_image(&name, &content).map_err(|failure| wrong(failure.0))?;
    let (media_type, content) = fitted.unwrap_or((media_type, content));
    Ok(FileAttachment { name, media_type, content })
}

/// What a file is, by how it begins. Its name may say anything.
fn media_type(content: &[u8]) -> Option<&'static str> {
    let is_webp = content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP");
    [
        (content.starts_with(b"\x89PNG\r\n\x1a\n"), "image/png"),
        (content.starts_with(b"\xff\xd8\xff"), "image/jpeg"),
        (content.starts_with(b"GIF8"), "image/gif"),
        (is_webp, "image/webp"),
        (content.starts_with(b"%PDF-"), "application/pdf"),
    ]
    .into_iter()
    .find_map(|(is_it, media_type)| is_it.then_some(media_type))
}

#[cfg(test)]
mod tests {
    use super::media_type;

    #[test]
    fn a_file_is_known_by_how_it_begins() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(media_type(b"RIFF....WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"RIFF....WAVEfmt "), None);
        assert_eq!(media_type(b"%PDF-1.7"), Some("application/pdf"));
        assert_eq!(media_type(b"GIF"), None);
        assert_eq!(media_type(b""), None);
    }
}
