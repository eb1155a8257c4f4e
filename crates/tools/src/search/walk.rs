//! Which files are looked at: those that `rg` would look at, by several threads at once.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use helve_protocol::ToolOutput;
use helve_workspace::{OpenedPath, metadata_without_links};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::display::display_path;
use crate::files::{explain_link_error, real_path};
use crate::{FileAccess, ToolContext, ToolFailure};

/// What reaches the model at most.
pub(crate) const MAX_SEARCH_OUTPUT_BYTES: usize = 48 << 10;

/// Where a search begins, and the project that it is seen from, both without links.
#[derive(Clone, Debug)]
pub(crate) struct SearchStart {
    pub(crate) root: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) is_folder: bool,
}

/// Finds where a search begins.
pub(crate) fn start(context: &ToolContext, path: Option<&str>) -> Result<SearchStart, ToolFailure> {
    let name = path.unwrap_or_default();
    let found = context.resolve(name, FileAccess::Read).and_then(|place| Ok((place.open()?, place)));
    let (opened, place) = found.map_err(|error| {
        let path = context.root.join(name);
        match error.kind() {
            ErrorKind::NotFound if name.contains("output:") => {
                ToolFailure::new("Outputs are no files: only `read` shows them, part by part. To search one, run the command again into a file.")
            }
            ErrorKind::NotFound => ToolFailure(format!(
                "There is no {}. List the folder above it to see what is there.",
                display_path(&context.root, &path)
            )),
            _ => ToolFailure(format!("{} can't be looked at: {}.", display_path(&context.root, &path), explain_link_error(error))),
        }
    })?;
    let root = real_path(&context.root).unwrap_or_else(|_| context.root.clone());
    Ok(SearchStart {
        root,
        path: place.path().to_owned(),
        is_folder: matches!(opened, OpenedPath::Folder(_)),
    })
}

/// What is looked at of all that a walk meets.
pub(crate) type EntryFilter = fn(&DirEntry) -> bool;

/// A walk, and the folders that it leaves out.
pub(crate) struct SearchWalk {
    pub(crate) builder: WalkBuilder,
    left_out: Arc<Mutex<SearchTroubles>>,
}

/// A walk with the rules of `rg`, begun at a place. The user's own list of what to ignore counts in repositories only, as
/// git has it. A folder whose rules can't be read without waiting for ever is left out.
pub(crate) fn walk(
    start: &SearchStart,
    user_ignores: Option<&Path>,
    wanted: EntryFilter,
) -> Result<SearchWalk, ToolFailure> {
    let mut builder = WalkBuilder::new(&start.path);
    // It is never asked for the user's list itself: it would read the environment.
    builder.current_dir(&start.root).git_global(false).add_custom_ignore_filename(".rgignore").threads(0);
    let in_repository = start.path.ancestors().any(|folder| folder.join(".git").exists());
    if let Some(list) = user_ignores.filter(|list| in_repository && list.is_file()) {
        // A line that can't be understood is passed over, as `rg` does.
        let _ = builder.add_ignore(list);
    }
    if let Some(rules) = start.path.ancestors().find_map(strange_rules) {
        return Err(ToolFailure(format!(
            "{} is no ordinary file, and what it ignores can't be known. Remove it first.",
            display_path(&start.root, &rules)
        )));
    }
    let left_out = Arc::new(Mutex::new(SearchTroubles::default()));
    let (noted, root) = (left_out.clone(), start.root.clone());
    builder.filter_entry(move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if entry.depth() > 0 && !wanted(entry) {
            return false;
        }
        let rules = if is_folder { strange_rules(entry.path()) } else { None };
        if let Some(rules) = &rules {
            lock_ignoring_poison(&noted)
                .add(format!("{}: it is no ordinary file", display_path(&root, rules)));
        }
        rules.is_none()
    });
    Ok(SearchWalk { builder, left_out })
}

/// A file with rules in a folder that is none, or far too large: a pipe would be waited for, a device never ends.
fn strange_rules(folder: &Path) -> Option<PathBuf> {
    const NAMES: [&str; 4] = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"];
    const MAX_BYTES: u64 = 4 << 20;
    let is_strange = |rules: &PathBuf| {
        rules.metadata().is_ok_and(|facts| !facts.is_dir() && (!facts.is_file() || facts.len() > MAX_BYTES))
    };
    NAMES.iter().map(|name| folder.join(name)).find(is_strange)
}

/// A glob as it is written in a folder: `./x` is `x`, and so is an absolute one that begins with the folder.
pub(crate) fn seen_from(folder: &Path, glob: &str) -> String {
    let (not, whole) = glob.strip_prefix('!').map_or(("", glob), |whole| ("!", whole));
    let inside = whole.strip_prefix(&*folder.to_string_lossy()).and_then(|rest| rest.strip_prefix('/'));
    format!("{not}{}", inside.unwrap_or(whole).trim_start_matches("./"))
}

/// The folder of a glob that begins elsewhere (`/x/*.rs`, `../x/*.rs`), and the glob as it is written there.
pub(crate) fn split_outside_glob(glob: &str) -> Option<(&str, &str)> {
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
    walk: &SearchWalk,
    stop: &CancellationToken,
    visitor: M,
) -> Result<SearchTroubles, ToolFailure>
where
    V: FnMut(DirEntry) -> WalkState + Send,
    M: Fn() -> V,
{
    let troubles = Mutex::new(SearchTroubles::default());
    walk.builder.build_parallel().run(|| {
        let mut visit = visitor();
        let troubles = &troubles;
        Box::new(move |entry| match entry {
            _ if stop.is_cancelled() => WalkState::Quit,
            Ok(entry) => visit(entry),
            Err(error) => {
                if is_met(&error) {
                    lock_ignoring_poison(troubles).add(error.to_string());
                }
                WalkState::Continue
            }
        })
    });
    if stop.is_cancelled() {
        return Err(ToolFailure::new("The search was stopped."));
    }
    let left_out = std::mem::take(&mut *lock_ignoring_poison(&walk.left_out));
    Ok(troubles.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).and(left_out))
}

/// Whether an error is about something in the tree, and not about where a folder led that is a link by now.
fn is_met(error: &ignore::Error) -> bool {
    match error {
        ignore::Error::WithPath { path, .. } => metadata_without_links(path).is_ok(),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => is_met(err),
        ignore::Error::Partial(errors) => errors.iter().all(is_met),
        _ => true,
    }
}

/// What is at the path of an entry, if that is in the tree: a walk goes by names, so a folder that became a link meanwhile may
/// have led it elsewhere.
pub(crate) fn tree_metadata(entry: &DirEntry) -> Option<Metadata> {
    metadata_without_links(entry.path()).ok()
}

/// What a search goes through: files, no links to them.
pub(crate) fn is_searched(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// What is in a lock, also after a thread has died with it: all that is kept there are counts and lists.
pub(crate) fn lock_ignoring_poison<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What could not be looked at: how much, and the first of it.
#[derive(Debug, Default)]
pub(crate) struct SearchTroubles {
    count: usize,
    first: Option<String>,
}

impl SearchTroubles {
    pub(crate) fn add(&mut self, trouble: String) {
        self.count += 1;
        if self.first.as_ref().is_none_or(|first| trouble < *first) {
            self.first = Some(trouble);
        }
    }

    pub(crate) fn and(mut self, others: SearchTroubles) -> SearchTroubles {
        let count = self.count + others.count;
        others.first.into_iter().for_each(|trouble| self.add(trouble));
        SearchTroubles { count, ..self }
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
