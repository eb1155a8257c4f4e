//! `list`

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use helve_protocol::{ToolAction, ToolClass};
use helve_workspace::{OpenedPath, names_in, open_without_links, read_link_without_links};
use ignore::{DirEntry, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::blocking::run_blocking;
use crate::display::{count_with_noun, display_path};
use crate::search::walk::{
    SearchStart, SearchTroubles, lock_ignoring_poison, output, start, tree_metadata, visit, walk,
};
use crate::{ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Shows what is in folders.
#[derive(Clone, Debug, Default)]
pub struct ListTool {
    /// What the user ignores in all repositories, in the form of `.gitignore`.
    pub user_ignores: Option<PathBuf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListInput {
    /// The folder; the project if left out.
    #[serde(default)]
    path: Option<String>,
    /// How many levels; as many as fit if left out.
    #[serde(default)]
    depth: Option<u32>,
}

/// How many lines a tree has.
const MAX_LIST_LINES: usize = 400;
/// How many of them one folder may take.
const MAX_LINES_PER_FOLDER: usize = 200;
/// What is walked through at most, to count it.
const MAX_WALKED_ENTRIES: usize = 200_000;
/// How many of the ignored are named.
const MAX_IGNORED_NAMED: usize = 20;
/// What is shown of a name.
const MAX_LIST_NAME_CHARS: usize = 100;

impl TypedTool for ListTool {
    const NAME: &'static str = "list";
    const DESCRIPTION: &'static str = include_str!("list.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = ListInput;

    fn intent(&self, input: &ListInput) -> String {
        format!("list {}", input.path.as_deref().unwrap_or("the project"))
    }

    fn actions(&self, input: &ListInput, root: &Path) -> Vec<ToolAction> {
        vec![ToolAction::Read(root.join(input.path.as_deref().unwrap_or_default()))]
    }

    async fn run(&self, input: ListInput, context: &ToolContext) -> ToolOutcome {
        let start = start(context, input.path.as_deref())?;
        if !start.is_folder {
            return Err(ToolFailure(format!(
                "{} is no folder. Use `read` to see what is in it.",
                display_path(&start.root, &start.path)
            )));
        }
        let depth = input.depth.map_or(usize::MAX, |depth| depth.max(1) as usize);
        let ignores = self.user_ignores.clone();
        run_blocking(context, move |context| list(&start, depth, ignores.as_deref(), &context.stop)).await
    }
}

fn list(start: &SearchStart, depth: usize, ignores: Option<&Path>, stop: &CancellationToken) -> ToolOutcome {
    let (entries, troubles) = collect(start, ignores, stop)?;
    let is_whole = entries.len() < MAX_WALKED_ENTRIES;
    let mut tree = ListedFolder::default();
    for (path, kind) in entries {
        tree.add(&path, kind);
    }
    let opened = tree.opened(depth);
    let mut text = String::new();
    tree.write(Path::new(""), &opened, 0, &mut text);
    let mut notes = Vec::new();
    if text.is_empty() {
        notes.push("[Nothing is in there, but for what may be ignored.]".to_owned());
    }
    if !is_whole {
        notes.push(format!(
            "[There is more: only {MAX_WALKED_ENTRIES} entries were looked at. List a smaller folder.]"
        ));
    } else if let Some(note) = ignored_note(&start.path, &tree, &opened) {
        notes.push(note);
    }
    notes.extend(troubles.note());
    Ok(output(text, notes, count_with_noun(tree.files, "file", "files")))
}

#[derive(Debug)]
enum ListedKind {
    Folder,
    File,
    Link(PathBuf),
}

type ListedEntries = Vec<(PathBuf, ListedKind)>;

/// Everything below a folder, seen from it.
fn collect(
    start: &SearchStart,
    ignores: Option<&Path>,
    stop: &CancellationToken,
) -> Result<(ListedEntries, SearchTroubles), ToolFailure> {
    // Hidden files belong to a project; what git keeps there does not.
    let mut walk = walk(start, ignores, |entry| entry.file_name() != OsStr::new(".git"))?;
    walk.builder.hidden(false);
    let entries = Mutex::new(Vec::new());
    let look = |entry: DirEntry| {
        let Ok(path) = entry.path().strip_prefix(&start.path) else { return WalkState::Continue };
        if path.as_os_str().is_empty() {
            return WalkState::Continue;
        }
        let Some(kind) = kind(&entry) else { return WalkState::Continue };
        let found = (path.to_owned(), kind);
        let mut entries = lock_ignoring_poison(&entries);
        if entries.len() == MAX_WALKED_ENTRIES {
            return WalkState::Quit;
        }
        entries.push(found);
        WalkState::Continue
    };
    let troubles = visit(&walk, stop, || look)?;
    let mut entries = std::mem::take(&mut *lock_ignoring_poison(&entries));
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok((entries, troubles))
}

/// What an entry is; nothing if it is not in the tree.
fn kind(entry: &DirEntry) -> Option<ListedKind> {
    let kind = tree_metadata(entry)?.file_type();
    Some(if kind.is_dir() {
        ListedKind::Folder
    } else if kind.is_symlink() {
        ListedKind::Link(read_link_without_links(entry.path()).unwrap_or_default())
    } else {
        ListedKind::File
    })
}

#[derive(Debug, Default)]
struct ListedFolder {
    entries: BTreeMap<OsString, ListedNode>,
    /// In it and in the folders below it.
    files: u64,
}

#[derive(Debug)]
enum ListedNode {
    Folder(ListedFolder),
    File,
    Link(PathBuf),
}

impl ListedFolder {
    fn add(&mut self, path: &Path, kind: ListedKind) {
        self.files += u64::from(!matches!(kind, ListedKind::Folder));
        let mut names = path.iter();
        let Some(name) = names.next() else { return };
        let rest = names.as_path();
        if !rest.as_os_str().is_empty() {
            // A walk that broke off may have missed the folder itself.
            let node = self
                .entries
                .entry(name.to_owned())
                .or_insert_with(|| ListedNode::Folder(ListedFolder::default()));
            if let ListedNode::Folder(folder) = node {
                folder.add(rest, kind);
            }
            return;
        }
        let node = match kind {
            ListedKind::Folder => ListedNode::Folder(ListedFolder::default()),
            ListedKind::File => ListedNode::File,
            ListedKind::Link(target) => ListedNode::Link(target),
        };
        self.entries.insert(name.to_owned(), node);
    }

    fn folders(&self) -> impl Iterator<Item = (&OsString, &ListedFolder)> {
        self.entries.iter().take(MAX_LINES_PER_FOLDER).filter_map(|(name, node)| match node {
            ListedNode::Folder(folder) => Some((name, folder)),
            _ => None,
        })
    }

    /// The folders that are shown with what is in them: those above come first, until the lines are used up.
    fn opened(&self, depth: usize) -> BTreeSet<PathBuf> {
        let mut opened = BTreeSet::new();
        let mut lines = 0;
        let mut next = VecDeque::from([(PathBuf::new(), 1, self)]);
        while let Some((path, level, folder)) = next.pop_front() {
            let more = folder.entries.len().min(MAX_LINES_PER_FOLDER);
            if level > depth || (level > 1 && lines + more > MAX_LIST_LINES) {
                continue;
            }
            lines += more;
            next.extend(folder.folders().map(|(name, folder)| (path.join(name), level + 1, folder)));
            opened.insert(path);
        }
        opened
    }

    fn at(&self, path: &Path) -> Option<&ListedFolder> {
        path.iter().try_fold(self, |folder, name| match folder.entries.get(name) {
            Some(ListedNode::Folder(folder)) => Some(folder),
            _ => None,
        })
    }

    /// Writes what is in it, each folder below its name.
    fn write(&self, path: &Path, opened: &BTreeSet<PathBuf>, level: usize, text: &mut String) {
        let indent = "  ".repeat(level);
        for (name, node) in self.entries.iter().take(MAX_LINES_PER_FOLDER) {
            let short = short_name(name);
            match node {
                ListedNode::File => text.push_str(&format!("{indent}{short}\n")),
                ListedNode::Link(target) => {
                    text.push_str(&format!("{indent}{short} -> {}\n", short_name(target.as_os_str())));
                }
                ListedNode::Folder(folder) => {
                    let path = path.join(name);
                    if opened.contains(&path) {
                        text.push_str(&format!("{indent}{short}/\n"));
                        folder.write(&path, opened, level + 1, text);
                    } else {
                        let files = count_with_noun(folder.files, "file", "files");
                        text.push_str(&format!("{indent}{short}/ [{files}]\n"));
                    }
                }
            }
        }
        let more = self.entries.len().saturating_sub(MAX_LINES_PER_FOLDER);
        if more > 0 {
            text.push_str(&format!("{indent}[{more} more]\n"));
        }
    }
}

fn short_name(name: &OsStr) -> String {
    // A line break in a name must not pass for the end of a line.
    let name: String = name.to_string_lossy().replace(char::is_control, "\u{fffd}");
    match name.char_indices().nth(MAX_LIST_NAME_CHARS) {
        Some((at, _)) => format!("{} [cut]", name.get(..at).unwrap_or_default()),
        None => name,
    }
}

/// What is in the opened folders and not in the tree.
fn ignored_note(start: &Path, tree: &ListedFolder, opened: &BTreeSet<PathBuf>) -> Option<String> {
    let mut ignored: Vec<String> = opened
        .iter()
        .filter_map(|path| Some((path, tree.at(path)?, names_at(&start.join(path))?)))
        .flat_map(|(path, folder, there)| {
            let is_ignored =
                move |(name, _): &(OsString, bool)| name != ".git" && !folder.entries.contains_key(name);
            let ignored = there.into_iter().filter(is_ignored);
            ignored.map(|(name, is_folder)| {
                let slash = if is_folder { "/" } else { "" };
                format!("{}{slash}", short_name(path.join(name).as_os_str()))
            })
        })
        .collect();
    ignored.sort();
    let more = match ignored.len().saturating_sub(MAX_IGNORED_NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    ignored.truncate(MAX_IGNORED_NAMED);
    if ignored.is_empty() { None } else { Some(format!("[Ignored: {}{more}]", ignored.join(", "))) }
}

/// The names in a folder that is in the tree.
fn names_at(folder: &Path) -> Option<Vec<(OsString, bool)>> {
    match open_without_links(folder) {
        Ok(OpenedPath::Folder(folder)) => names_in(folder).ok(),
        _ => None,
    }
}
