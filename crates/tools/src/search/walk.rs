//! Which files are looked at: those that `rg` would look at, by several threads at once.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use helve_protocol::ToolOutput;
use helve_workspace::can_read_ignore_files;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::{Context, ToolFailure};

/// What reaches the model at most.
pub(crate) const BYTES: usize = 48 << 10;

/// Where a search begins.
pub(crate) fn start(context: &Context, path: Option<&str>) -> Result<PathBuf, ToolFailure> {
    // Without the dots, which ignore rules and names in results can't do with.
    let path: PathBuf = context.place(path.unwrap_or_default()).components().collect();
    let has_parents = path.components().any(|part| part == Component::ParentDir);
    let found = if has_parents { path.canonicalize() } else { path.metadata().map(|_| path.clone()) };
    found.map_err(|error| match error.kind() {
        ErrorKind::NotFound if path.to_string_lossy().contains("output:") => {
            ToolFailure::new("Outputs are no files: only `read` shows them, part by part. To search one, run the command again into a file.")
        }
        ErrorKind::NotFound => ToolFailure(format!(
            "There is no {}. List the folder above it to see what is there.",
            shown(&context.root, &path)
        )),
        _ => ToolFailure(format!("{} can't be looked at: {error}.", shown(&context.root, &path))),
    })
}

/// A path as the model is told it: from the project's root, if it is in there.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    let short = short(root, path);
    if short.as_os_str().is_empty() { ".".to_owned() } else { short.to_string_lossy().into_owned() }
}

pub(crate) fn short<'a>(root: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(root).unwrap_or(path)
}

/// A walk with the rules of `rg`, begun at a place. The user's own list of what to ignore counts in repositories only, as
/// git has it.
///
/// What is kept from the walk besides, `is_wanted` says. A folder whose rules can't be read is not looked into: the walk would
/// wait for ever where they are a pipe.
pub(crate) fn walk(
    root: &Path,
    start: &Path,
    user_ignores: Option<&Path>,
    is_wanted: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    // It is never asked for the user's list itself: it would read the environment.
    builder.current_dir(root).git_global(false).threads(0);
    if start.ancestors().all(can_read_ignore_files) {
        let is_folder = |entry: &DirEntry| entry.file_type().is_some_and(|kind| kind.is_dir());
        let can_read = move |entry: &DirEntry| !is_folder(entry) || can_read_ignore_files(entry.path());
        builder.add_custom_ignore_filename(".rgignore");
        builder.filter_entry(move |entry| is_wanted(entry) && can_read(entry));
    } else {
        // Then no rules count.
        builder.parents(false).ignore(false).git_ignore(false).git_exclude(false).filter_entry(is_wanted);
    }
    let in_repository = start.ancestors().any(|folder| folder.join(".git").exists());
    if let Some(list) = user_ignores.filter(|list| in_repository && list.is_file()) {
        // A line that can't be understood is passed over, as `rg` does.
        let _ = builder.add_ignore(list);
    }
    builder
}

/// A glob as it is written in a folder: `./x` is `x`, and so is an absolute one that begins with the folder.
pub(crate) fn seen_from(folder: &Path, glob: &str) -> String {
    let (not, whole) = glob.strip_prefix('!').map_or(("", glob), |whole| ("!", whole));
    let inside = whole.strip_prefix(&*folder.to_string_lossy()).and_then(|rest| rest.strip_prefix('/'));
    format!("{not}{}", inside.unwrap_or(whole).trim_start_matches("./"))
}

/// The folder of a glob that begins elsewhere (`/x/*.rs`, `../x/*.rs`), and the glob as it is written there.
pub(crate) fn elsewhere(glob: &str) -> Option<(&str, &str)> {
    let is_elsewhere = glob.starts_with('/') || glob.starts_with("../");
    let plain = glob.find(['*', '?', '[', '{']).and_then(|end| glob.get(..end)).unwrap_or(glob);
    let end = plain.rfind('/').filter(|_| is_elsewhere)?;
    let (folder, rest) = glob.split_at_checked(end + 1)?;
    // `/x.rs` is the one at the top of the project, as for git and `rg`.
    (!rest.is_empty() && folder != "/").then_some((folder, rest))
}

/// What a glob lets through, as `rg -g` has it: what it names is found though it may be hidden or ignored.
pub(crate) fn filter(folder: &Path, glob: &str) -> Result<Override, ToolFailure> {
    let glob = seen_from(folder, glob);
    // To `rg` these name all that is hidden or ignored too, which nobody who writes them means.
    if matches!(glob.as_str(), "" | "." | "*" | "**" | "**/*") {
        return Ok(Override::empty());
    }
    let mut builder = OverrideBuilder::new(folder);
    builder.add(&glob).and_then(|builder| builder.build()).map_err(|error| {
        ToolFailure(format!(
            "The glob is wrong: {error}. Write it like `*.rs`, `src/**/*.ts` or `*.{{c,h}}`; \
             a bracket stands for itself after a backslash."
        ))
    })
}

/// Shows each entry to one of several visitors, each on a thread of its own. Gives what could not be looked at.
pub(crate) fn visit<V, M>(
    builder: &WalkBuilder,
    stop: &CancellationToken,
    visitor: M,
) -> Result<Troubles, ToolFailure>
where
    V: FnMut(DirEntry) -> WalkState + Send,
    M: Fn() -> V,
{
    let troubles = Mutex::new(Troubles::default());
    builder.build_parallel().run(|| {
        let mut visit = visitor();
        let troubles = &troubles;
        Box::new(move |entry| match entry {
            _ if stop.is_cancelled() => WalkState::Quit,
            Ok(entry) => visit(entry),
            Err(error) => {
                held(troubles).add(error.to_string());
                WalkState::Continue
            }
        })
    });
    if stop.is_cancelled() {
        return Err(ToolFailure::new("The search was stopped."));
    }
    Ok(troubles.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// What a search goes through: files, no links to them; and whatever was named itself.
pub(crate) fn is_searched(entry: &DirEntry) -> bool {
    match entry.depth() {
        0 => entry.path().is_file(),
        _ => entry.file_type().is_some_and(|kind| kind.is_file()),
    }
}

/// What is in a lock, also after a thread has died with it: all that is kept there are counts and lists.
pub(crate) fn held<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What could not be looked at: how much, and the first of it.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    count: usize,
    first: Option<String>,
}

impl Troubles {
    pub(crate) fn add(&mut self, trouble: String) {
        self.count += 1;
        if self.first.as_ref().is_none_or(|first| trouble < *first) {
            self.first = Some(trouble);
        }
    }

    pub(crate) fn and(mut self, others: Troubles) -> Troubles {
        let count = self.count + others.count;
        others.first.into_iter().for_each(|trouble| self.add(trouble));
        Troubles { count, ..self }
    }

    /// A line for the model, if there was any trouble.
    pub(crate) fn note(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(match self.count {
            1 => format!("[Not looked at: {first}]"),
            count => format!("[{count} places were not looked at, the first: {first}]"),
        })
    }
}

/// A result: a text for the model, its notes below it, and a few words for people.
pub(crate) fn output(
    mut text: String,
    notes: impl IntoIterator<Item = String>,
    display: String,
) -> ToolOutput {
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    ToolOutput { text, display: Some(display), ..ToolOutput::default() }
}

/// A number with its word.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
