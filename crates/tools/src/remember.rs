//! `remember`

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use helve_protocol::{ToolAction, ToolClass, ToolOutput, split_words};
use helve_workspace::{OpenedPath, ResolvedPath, TextFile, main_ending};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::run_blocking;
use crate::files::atomic::{AttributedContent, PlannedChange, commit};
use crate::files::file_attributes::FileAttributes;
use crate::files::{explain_link_error as told_of, read_bounded, real_path};
use crate::{ChangeScope, FileAccess, ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Adds lines to the files that people and later sessions read.
#[derive(Clone, Debug)]
pub struct RememberTool {
    /// The file of the project. It must lie in it.
    pub project: PathBuf,
    /// The user's own file.
    pub user: PathBuf,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RememberInput {
    text: String,
    #[serde(default)]
    scope: MemoryScope,
}

/// Whom it is about: this project (the default) or the user everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MemoryScope {
    #[default]
    Project,
    User,
}

const MAX_MEMORY_CHARS: usize = 2_000;
const MAX_MEMORY_FILE_BYTES: usize = 32 << 10;
const MEMORY_FILE_TITLE: &str = "# Memory\n\n";
/// How often a lock is tried that another process holds, and how long it is waited in between.
const MEMORY_LOCK_ATTEMPTS: usize = 100;
const MEMORY_LOCK_INTERVAL: Duration = Duration::from_millis(20);

impl TypedTool for RememberTool {
    const NAME: &'static str = "remember";
    const DESCRIPTION: &'static str = include_str!("remember.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: ChangeScope = ChangeScope::Named;
    type Input = RememberInput;

    fn intent(&self, input: &RememberInput) -> String {
        let whose = match input.scope {
            MemoryScope::Project => "this project",
            MemoryScope::User => "all projects",
        };
        format!("remember for {whose}: {}", memory_line(&input.text))
    }

    fn actions(&self, input: &RememberInput, _: &Path) -> Vec<ToolAction> {
        vec![ToolAction::Other { what: memory_line(&input.text), is_confined: false }]
    }

    async fn run(&self, input: RememberInput, context: &ToolContext) -> ToolOutcome {
        let line = memory(&input.text)?;
        let file = self.file(input.scope, context)?;
        let lock = lock(&file, context).await?;
        run_blocking(context, move |context| {
            let _lock = lock;
            file.add(&line, context)
        })
        .await
    }
}

fn told(text: String) -> ToolOutput {
    ToolOutput { text, ..ToolOutput::default() }
}

impl RememberTool {
    fn file(&self, scope: MemoryScope, context: &ToolContext) -> Result<MemoryFile, ToolFailure> {
        let path = match scope {
            MemoryScope::Project => &self.project,
            MemoryScope::User => &self.user,
        };
        let cannot = |error| ToolFailure(format!("{} can't be used: {error}.", path.display()));
        let place = ResolvedPath::new(path).map_err(cannot)?;
        if scope == MemoryScope::Project {
            let root = real_path(&context.root).map_err(cannot)?;
            // Where the file itself is was decided when this tool was offered; where a link leads was not.
            let own = path.strip_prefix(&context.root).map(|inside| root.join(inside));
            let is_own = own.is_ok_and(|own| own == place.path());
            if !place.path().starts_with(root)
                || !is_own && !(context.allows)(FileAccess::Write, place.path())
            {
                return Err(ToolFailure(format!(
                    "{} leads out of the project, or where nothing may be written, so nothing was written. Tell the person.",
                    path.display()
                )));
            }
        }
        let place = place.make_folders().map_err(cannot)?;
        Ok(MemoryFile { path: place.path().to_owned(), place, scope })
    }
}

/// What is to be remembered, as one line.
fn memory(text: &str) -> Result<String, ToolFailure> {
    let line = memory_line(text);
    let letters = line.chars().count();
    if line.is_empty() {
        return Err(ToolFailure::new("There is nothing to remember. Give a text."));
    }
    if letters > MAX_MEMORY_CHARS {
        return Err(ToolFailure(format!(
            "That is {letters} characters; at most {MAX_MEMORY_CHARS} are kept. Say it shorter, or put it into a file and \
             remember where it is."
        )));
    }
    Ok(line)
}

/// Without line breaks, control characters and a bullet of its own.
fn memory_line(text: &str) -> String {
    let line = split_words(text).collect::<Vec<_>>().join(" ");
    std::iter::successors(Some(line.as_str()), |line| bullet(line)).last().unwrap_or_default().to_owned()
}

/// What a bullet of a list says.
fn bullet(line: &str) -> Option<&str> {
    let line = line.trim();
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).map(str::trim_start)
}

fn is_known(text: &str, line: &str) -> bool {
    let wanted = line.to_lowercase();
    text.lines().filter_map(bullet).any(|known| memory_line(known).to_lowercase() == wanted)
}

/// The text with one bullet more at its end, whatever a person made of the rest.
fn with_bullet(text: &str, line: &str) -> String {
    let ending = main_ending(text);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { ending };
    format!("{text}{gap}- {line}{ending}")
}

/// A file of memories, where it really is.
struct MemoryFile {
    path: PathBuf,
    place: ResolvedPath,
    scope: MemoryScope,
}

impl MemoryFile {
    /// Adds a line, unless it is there.
    fn add(&self, line: &str, context: &ToolContext) -> ToolOutcome {
        let before = self.read()?;
        let text = before.as_ref().map_or(MEMORY_FILE_TITLE, |(_, there)| &there.text);
        if is_known(text, line) {
            return Ok(told(format!("{} says that already. Nothing was changed.", self.path.display())));
        }
        let after = with_bullet(text, line);
        self.must_have_room(text, &after)?;
        context.ground.change(&[&self.place], || self.write(before.as_ref(), after))?;
        Ok(told(format!("Added to {}.", self.path.display())))
    }

    fn cannot(&self, why: impl std::fmt::Display) -> ToolFailure {
        ToolFailure(format!("{} was not changed: {why}.", self.path.display()))
    }

    fn read(&self) -> Result<Option<(AttributedContent, TextFile)>, ToolFailure> {
        let file = match self.place.open() {
            Ok(OpenedPath::File(file)) => file,
            Ok(_) => return Err(self.cannot("it is no ordinary file")),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.cannot(told_of(error))),
        };
        // A file that is much too large is not read to the end.
        let bytes = read_bounded(&file, 1 << 20).map_err(|error| self.cannot(error))?;
        let text = TextFile::read(&bytes).map_err(|error| self.cannot(error))?;
        let like = Some(FileAttributes::of(&file).map_err(|error| self.cannot(error))?);
        Ok(Some((AttributedContent { bytes, like }, text)))
    }

    fn must_have_room(&self, before: &str, after: &str) -> Result<(), ToolFailure> {
        if after.len() <= MAX_MEMORY_FILE_BYTES {
            return Ok(());
        }
        let path = self.path.display();
        let next = match self.scope {
            MemoryScope::Project => {
                "Read it, make it shorter with edit (join what belongs together, drop what no longer \
                               holds), and try again"
            }
            MemoryScope::User => "Ask the person to shorten it",
        };
        let (there, most) = (before.len() >> 10, MAX_MEMORY_FILE_BYTES >> 10);
        Err(ToolFailure(format!("{path} is full: {there} KiB of {most}. {next}. Nothing was changed.")))
    }

    fn write(
        &self,
        before: Option<&(AttributedContent, TextFile)>,
        after: String,
    ) -> Result<(), ToolFailure> {
        let bytes = match before {
            Some((_, file)) => file.with(after).to_bytes(),
            None => after.into_bytes(),
        };
        let like = before.and_then(|(content, _)| content.like.clone());
        let change = PlannedChange {
            place: self.place.clone(),
            before: before.map(|(content, _)| content.clone()),
            after: Some(AttributedContent { bytes, like }),
        };
        commit(&[change]).map_err(|error| ToolFailure(error.to_string()))
    }
}

/// Holds the folder of the file, so that no other process adds to the file at the same time. Nothing is left behind.
async fn lock(file: &MemoryFile, context: &ToolContext) -> Result<Option<File>, ToolFailure> {
    let folder = file.place.reopen_folder().map_err(|error| file.cannot(error))?;
    for _ in 0..MEMORY_LOCK_ATTEMPTS {
        match folder.try_lock() {
            Ok(()) => return Ok(Some(folder)),
            Err(TryLockError::WouldBlock) => {}
            // Some file systems know no locks. Then a file that changed under our hands is still noticed.
            Err(TryLockError::Error(_)) => return Ok(None),
        }
        tokio::select! {
            () = tokio::time::sleep(MEMORY_LOCK_INTERVAL) => {}
            () = context.stop.cancelled() => return Err(file.cannot("it was interrupted")),
        }
    }
    Err(file.cannot("another process is writing it; try again"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_becomes_one_line() {
        assert_eq!(memory_line("  - use\n\tspaces \u{1b}[31m here "), "use spaces [31m here");
        assert_eq!(memory_line(" \n "), "");
        assert!(memory(" \n ").is_err());
        assert!(memory(&"é".repeat(MAX_MEMORY_CHARS)).is_ok());
        assert!(memory(&"é".repeat(MAX_MEMORY_CHARS + 1)).is_err());
    }

    #[test]
    fn bullets_are_added_as_the_file_is_written() {
        assert_eq!(with_bullet(MEMORY_FILE_TITLE, "a"), "# Memory\n\n- a\n");
        assert_eq!(with_bullet("# Mine\r\n* x\r\nno end", "a"), "# Mine\r\n* x\r\nno end\r\n- a\r\n");
        assert_eq!(with_bullet("", "a"), "- a\n");
    }

    proptest! {
        #[test]
        fn what_was_added_is_known(text in "[a-z\n*-]{0,30}", line in "[ -~é\n]{1,20}") {
            if let Ok(line) = memory(&line) {
                let after = with_bullet(&text, &line);
                prop_assert!(after.starts_with(&text));
                prop_assert!(is_known(&after, &line), "{:?}", after);
            }
        }
    }
}
