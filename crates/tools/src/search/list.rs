//! `list`

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use helve_protocol::{Action, ToolClass};
use ignore::{DirEntry, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::aside::aside;
use crate::search::walk::{Troubles, counted, held, output, shown, start, visit, walk};
use crate::{Context, Done, ToolFailure, TypedTool};

/// Shows what is in folders.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// What the user ignores in all repositories, in the form of `.gitignore`.
    pub user_ignores: Option<PathBuf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The folder; the project if left out.
    #[serde(default)]
    path: Option<String>,
    /// How many levels; as many as fit if left out.
    #[serde(default)]
    depth: Option<u32>,
}

/// How many lines a tree has.
const LINES: usize = 400;
/// How many of them one folder may take.
const OF_ONE_FOLDER: usize = 200;
/// What is walked through at most, to count it.
const WALKED: usize = 200_000;
/// How many of the ignored are named.
const IGNORED: usize = 20;
/// What is shown of a name.
const LETTERS: usize = 100;

impl TypedTool for List {
    const NAME: &'static str = "list";
    const DESCRIPTION: &'static str = include_str!("list.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("list {}", input.path.as_deref().unwrap_or("the project"))
    }

    fn actions(&self, input: &Input, root: &Path) -> Vec<Action> {
        vec![Action::Read(root.join(input.path.as_deref().unwrap_or_default()))]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let start = start(context, input.path.as_deref())?;
        if !start.is_dir() {
            return Err(ToolFailure(format!(
                "{} is no folder. Use `read` to see what is in it.",
                shown(&context.root, &start)
            )));
        }
        let depth = input.depth.map_or(usize::MAX, |depth| depth.max(1) as usize);
        let (root, ignores) = (context.root.clone(), self.user_ignores.clone());
        aside(context, move |context| list(&root, &start, depth, ignores.as_deref(), &context.stop)).await
    }
}

fn list(root: &Path, start: &Path, depth: usize, ignores: Option<&Path>, stop: &CancellationToken) -> Done {
    let (entries, troubles) = collect(root, start, ignores, stop)?;
    let is_whole = entries.len() < WALKED;
    let mut tree = Folder::default();
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
        notes.push(format!("[There is more: only {WALKED} entries were looked at. List a smaller folder.]"));
    } else if let Some(note) = ignored_note(start, &tree, &opened) {
        notes.push(note);
    }
    notes.extend(troubles.note());
    Ok(output(text, notes, counted(tree.files, "file", "files")))
}

#[derive(Debug)]
enum Kind {
    Folder,
    File,
    Link(PathBuf),
}

type Entries = Vec<(PathBuf, Kind)>;

/// Everything below a folder, seen from it.
fn collect(
    root: &Path,
    start: &Path,
    ignores: Option<&Path>,
    stop: &CancellationToken,
) -> Result<(Entries, Troubles), ToolFailure> {
    let mut walk =
        walk(root, start, ignores, |entry| entry.file_name() != OsStr::new(".git") || entry.depth() == 0);
    // Hidden files belong to a project; what git keeps there does not.
    walk.hidden(false);
    let entries = Mutex::new(Vec::new());
    let look = |entry: DirEntry| {
        let Ok(path) = entry.path().strip_prefix(start) else { return WalkState::Continue };
        if path.as_os_str().is_empty() {
            return WalkState::Continue;
        }
        let found = (path.to_owned(), kind(&entry));
        let mut entries = held(&entries);
        if entries.len() == WALKED {
            return WalkState::Quit;
        }
        entries.push(found);
        WalkState::Continue
    };
    let troubles = visit(&walk, stop, || look)?;
    let mut entries = std::mem::take(&mut *held(&entries));
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok((entries, troubles))
}

fn kind(entry: &DirEntry) -> Kind {
    match entry.file_type() {
        Some(kind) if kind.is_dir() => Kind::Folder,
        Some(kind) if kind.is_symlink() => Kind::Link(fs::read_link(entry.path()).unwrap_or_default()),
        _ => Kind::File,
    }
}

#[derive(Debug, Default)]
struct Folder {
    entries: BTreeMap<OsString, Node>,
    /// In it and in the folders below it.
    files: u64,
}

#[derive(Debug)]
enum Node {
    Folder(Folder),
    File,
    Link(PathBuf),
}

impl Folder {
    fn add(&mut self, path: &Path, kind: Kind) {
        self.files += u64::from(!matches!(kind, Kind::Folder));
        let mut names = path.iter();
        let Some(name) = names.next() else { return };
        let rest = names.as_path();
        if !rest.as_os_str().is_empty() {
            // A walk that broke off may have missed the folder itself.
            let node = self.entries.entry(name.to_owned()).or_insert_with(|| Node::Folder(Folder::default()));
            if let Node::Folder(folder) = node {
                folder.add(rest, kind);
            }
            return;
        }
        let node = match kind {
            Kind::Folder => Node::Folder(Folder::default()),
            Kind::File => Node::File,
            Kind::Link(target) => Node::Link(target),
        };
        self.entries.insert(name.to_owned(), node);
    }

    fn folders(&self) -> impl Iterator<Item = (&OsString, &Folder)> {
        self.entries.iter().take(OF_ONE_FOLDER).filter_map(|(name, node)| match node {
            Node::Folder(folder) => Some((name, folder)),
            _ => None,
        })
    }

    /// The folders that are shown with what is in them: those above come first, until the lines are used up.
    fn opened(&self, depth: usize) -> BTreeSet<PathBuf> {
        let mut opened = BTreeSet::new();
        let mut lines = 0;
        let mut next = VecDeque::from([(PathBuf::new(), 1, self)]);
        while let Some((path, level, folder)) = next.pop_front() {
            let more = folder.entries.len().min(OF_ONE_FOLDER);
            if level > depth || (level > 1 && lines + more > LINES) {
                continue;
            }
            lines += more;
            next.extend(folder.folders().map(|(name, folder)| (path.join(name), level + 1, folder)));
            opened.insert(path);
        }
        opened
    }

    fn at(&self, path: &Path) -> Option<&Folder> {
        path.iter().try_fold(self, |folder, name| match folder.entries.get(name) {
            Some(Node::Folder(folder)) => Some(folder),
            _ => None,
        })
    }

    /// Writes what is in it, each folder below its name.
    fn write(&self, path: &Path, opened: &BTreeSet<PathBuf>, level: usize, text: &mut String) {
        let indent = "  ".repeat(level);
        for (name, node) in self.entries.iter().take(OF_ONE_FOLDER) {
            let short = short_name(name);
            match node {
                Node::File => text.push_str(&format!("{indent}{short}\n")),
                Node::Link(target) => {
                    text.push_str(&format!("{indent}{short} -> {}\n", short_name(target.as_os_str())));
                }
                Node::Folder(folder) => {
                    let path = path.join(name);
                    if opened.contains(&path) {
                        text.push_str(&format!("{indent}{short}/\n"));
                        folder.write(&path, opened, level + 1, text);
                    } else {
                        let files = counted(folder.files, "file", "files");
                        text.push_str(&format!("{indent}{short}/ [{files}]\n"));
                    }
                }
            }
        }
        let more = self.entries.len().saturating_sub(OF_ONE_FOLDER);
        if more > 0 {
            text.push_str(&format!("{indent}[{more} more]\n"));
        }
    }
}

fn short_name(name: &OsStr) -> String {
    // A line break in a name must not pass for the end of a line.
    let name: String = name.to_string_lossy().replace(char::is_control, "\u{fffd}");
    match name.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{} [cut]", name.get(..at).unwrap_or_default()),
        None => name,
    }
}

/// What is in the opened folders and not in the tree.
fn ignored_note(start: &Path, tree: &Folder, opened: &BTreeSet<PathBuf>) -> Option<String> {
    let mut ignored: Vec<String> = opened
        .iter()
        .filter_map(|path| Some((path, tree.at(path)?, fs::read_dir(start.join(path)).ok()?)))
        .flat_map(|(path, folder, there)| {
            let is_ignored = |name: &OsString| name != ".git" && !folder.entries.contains_key(name);
            let entries = there.filter_map(Result::ok).filter(move |entry| is_ignored(&entry.file_name()));
            entries.map(|entry| ignored_name(path, &entry))
        })
        .collect();
    ignored.sort();
    let more = match ignored.len().saturating_sub(IGNORED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    ignored.truncate(IGNORED);
    if ignored.is_empty() { None } else { Some(format!("[Ignored: {}{more}]", ignored.join(", "))) }
}

fn ignored_name(folder: &Path, entry: &fs::DirEntry) -> String {
    let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
    format!("{}{slash}", short_name(folder.join(entry.file_name()).as_os_str()))
}
