//! Which instruction files count, in which order, and which are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path, PathBuf};

use crate::frontmatter::{PathGlobs, parse_rule_file};
use crate::imports::find_imports;
use crate::instruction_files::{InstructionFiles, ReadFailure};

/// How far imports of imports are followed.
const MAX_IMPORT_HOPS: usize = 4;
/// So many files are looked at.
const MAX_INSTRUCTION_FILES: usize = 200;

/// Where instruction files are looked for. All paths are absolute.
#[derive(Clone, Debug, Default)]
pub struct InstructionPlaces {
    /// The project.
    pub root: PathBuf,
    /// The folder that Helve was started in, the root or below it.
    pub working_folder: PathBuf,
    /// What `~` means in an import.
    pub home: Option<PathBuf>,
    /// The administrator's file.
    pub administrator: Option<PathBuf>,
    /// The user's own files.
    pub user: Vec<PathBuf>,
    /// What was remembered for the user.
    pub user_memory: Option<PathBuf>,
    /// What was remembered for the project.
    pub project_memory: Option<PathBuf>,
    /// Files that the user named for this session.
    pub named: Vec<PathBuf>,
    /// Exactly these paths may be imported or linked to although they are hidden or out of the project.
    pub allowed: Vec<PathBuf>,
    pub limits: InstructionLimits,
}

/// How much text is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionLimits {
    pub file_bytes: usize,
    pub total_bytes: usize,
}

impl Default for InstructionLimits {
    fn default() -> InstructionLimits {
        InstructionLimits { file_bytes: 32 << 10, total_bytes: 96 << 10 }
    }
}

/// Why a file counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructionOrigin {
    Administrator,
    User,
    /// Named with `--rules`.
    Named,
    /// It lies on the way from the root to the working folder.
    Project,
    /// A file below its folder was touched.
    Nested,
    /// A rule that always holds.
    Rule,
    /// A rule for paths, one of which was touched.
    RuleForPaths(Vec<String>),
    Memory,
    ImportedBy(PathBuf),
}

impl fmt::Display for InstructionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstructionOrigin::Administrator => f.write_str("set by the administrator"),
            InstructionOrigin::User => f.write_str("the user's own"),
            InstructionOrigin::Named => f.write_str("named with --rules"),
            InstructionOrigin::Project => f.write_str("of the project"),
            InstructionOrigin::Nested => f.write_str("for files in its folder"),
            InstructionOrigin::Rule => f.write_str("a rule of the project"),
            InstructionOrigin::RuleForPaths(paths) => write!(f, "a rule for {}", paths.join(", ")),
            InstructionOrigin::Memory => f.write_str("remembered"),
            InstructionOrigin::ImportedBy(path) => write!(f, "imported by {}", path.display()),
        }
    }
}

/// One file that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionPart {
    /// As it was named or found.
    pub path: PathBuf,
    pub origin: InstructionOrigin,
    pub text: String,
    /// Of the whole file as it was read.
    pub hash: String,
    /// The model was told another text of it before.
    pub is_changed: bool,
    /// What a person should know: that it was cut, or is no clean text.
    pub warning: Option<String>,
}

/// A file that does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkippedInstruction {
    pub path: PathBuf,
    pub reason: SkipReason,
}

/// Why a file does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// It is not in the project, and the user has not allowed it.
    OutsideProject,
    /// It is a secret, or a rule denies it.
    Hidden,
    NotAFile,
    Unreadable(String),
    /// There is no room for it.
    TotalLimit(usize),
    TooManyHops,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::OutsideProject => {
                f.write_str("it is outside the project; instructions.allow can allow it")
            }
            SkipReason::Hidden => {
                f.write_str("it may hold secrets or is denied; instructions.allow can allow it")
            }
            SkipReason::NotAFile => f.write_str("it is not a regular file"),
            SkipReason::Unreadable(why) => write!(f, "it can't be read: {why}"),
            SkipReason::TotalLimit(bytes) => write!(f, "instructions are limited to {bytes} bytes in total"),
            SkipReason::TooManyHops => write!(f, "imports are followed {MAX_IMPORT_HOPS} times at most"),
        }
    }
}

/// What the model was told already: hashes of files by their paths.
pub type KnownInstructions = BTreeMap<PathBuf, String>;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedInstructions {
    /// What the model has not been told yet.
    pub parts: Vec<InstructionPart>,
    pub skipped: Vec<SkippedInstruction>,
}

/// Loads the instructions that count once these paths have been touched, but for those that are known.
pub fn load_instructions(
    places: &InstructionPlaces,
    files: &dyn InstructionFiles,
    touched: &BTreeSet<PathBuf>,
    known: &KnownInstructions,
) -> LoadedInstructions {
    let root =
        files.resolve(&places.root).map_or_else(|_| places.root.clone(), |root| root.path().to_owned());
    let allowed = places.allowed.iter().filter_map(|path| files.resolve(path).ok());
    let mut loader = InstructionLoader {
        places,
        files,
        known,
        allowed: allowed.map(|allowed| allowed.path().to_owned()).collect(),
        root,
        seen_paths: BTreeSet::new(),
        seen_hashes: BTreeSet::new(),
        total_bytes: 0,
        loaded: LoadedInstructions::default(),
    };
    loader.load_all(touched);
    loader.loaded.skipped.sort();
    loader.loaded.skipped.dedup();
    loader.loaded
}

/// Whose word a file is, and so what it may lead to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// The user or the administrator: what they name may lie anywhere.
    Person,
    /// Whoever wrote the project.
    Project,
}

struct InstructionLoader<'a> {
    places: &'a InstructionPlaces,
    files: &'a dyn InstructionFiles,
    known: &'a KnownInstructions,
    /// Real paths.
    allowed: Vec<PathBuf>,
    /// Its real path.
    root: PathBuf,
    seen_paths: BTreeSet<PathBuf>,
    seen_hashes: BTreeSet<String>,
    total_bytes: usize,
    loaded: LoadedInstructions,
}

impl InstructionLoader<'_> {
    fn load_all(&mut self, touched: &BTreeSet<PathBuf>) {
        let places = self.places;
        if let Some(path) = &places.administrator {
            self.add(path, InstructionOrigin::Administrator, Author::Person, 0);
        }
        for path in &places.user {
            self.add(path, InstructionOrigin::User, Author::Person, 0);
        }
        if let Some(path) = &places.user_memory {
            self.add(path, InstructionOrigin::Memory, Author::Person, 0);
        }
        let first = folders_between(&places.root, &places.working_folder);
        for folder in &first {
            self.add_folder(folder, &InstructionOrigin::Project);
        }
        self.add(&places.root.join(".helve/guidelines.md"), InstructionOrigin::Project, Author::Project, 0);
        self.add_rules(touched);
        if let Some(path) = &places.project_memory {
            self.add(path, InstructionOrigin::Memory, Author::Project, 0);
        }
        for path in &places.named {
            let is_inside = path.starts_with(&places.root);
            let author = if is_inside { Author::Project } else { Author::Person };
            self.add(path, InstructionOrigin::Named, author, 0);
        }
        let below = touched.iter().flat_map(|path| folders_between(&places.root, path));
        let nested: BTreeSet<PathBuf> = below.filter(|folder| !first.contains(folder)).collect();
        for folder in nested {
            self.add_folder(&folder, &InstructionOrigin::Nested);
        }
    }

    fn add_folder(&mut self, folder: &Path, origin: &InstructionOrigin) {
        let add = |loader: &mut Self, name: &str| {
            loader.add(&folder.join(name), origin.clone(), Author::Project, 0)
        };
        if !add(self, "AGENTS.override.md") {
            add(self, "AGENTS.md");
        }
        add(self, "CLAUDE.md");
        add(self, "CLAUDE.local.md");
    }

    fn add_rules(&mut self, touched: &BTreeSet<PathBuf>) {
        for path in self.files.markdown_below(&self.places.root.join(".helve/rules")) {
            // What a rule is about is not known before it is read, and it is only text of the project.
            let Ok(text) = self.read(&path, Author::Project, 0) else {
                self.add(&path, InstructionOrigin::Rule, Author::Project, 0);
                continue;
            };
            let paths = parse_rule_file(&String::from_utf8_lossy(&text.bytes)).paths;
            if paths.is_empty() {
                self.add(&path, InstructionOrigin::Rule, Author::Project, 0);
                continue;
            }
            let globs = PathGlobs::new(&paths);
            let inside = touched.iter().filter_map(|path| path.strip_prefix(&self.places.root).ok());
            if inside.into_iter().any(|path| globs.matches(path)) {
                self.add(&path, InstructionOrigin::RuleForPaths(paths), Author::Project, 0);
            }
        }
    }

    fn read(&self, path: &Path, author: Author, hops: usize) -> Result<ReadInstruction, Option<SkipReason>> {
        let resolved = self.files.resolve(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => None,
            _ => Some(SkipReason::Unreadable(error.to_string())),
        })?;
        let real = resolved.path().to_owned();
        if !self.allowed.contains(&real) {
            if author == Author::Project && !real.starts_with(&self.root) {
                return Err(Some(SkipReason::OutsideProject));
            }
            // What a person put in its place is meant to be read, wherever their rules say that is.
            let is_named = author == Author::Person && hops == 0;
            if !is_named && self.files.is_hidden(&real) {
                return Err(Some(SkipReason::Hidden));
            }
        }
        match resolved.read(self.places.limits.file_bytes) {
            Ok(text) => Ok(ReadInstruction { real, bytes: text.bytes, total_bytes: text.total_bytes }),
            Err(ReadFailure::Missing) => Err(None),
            Err(ReadFailure::NotAFile) => Err(Some(SkipReason::NotAFile)),
            Err(ReadFailure::Unreadable(why)) => Err(Some(SkipReason::Unreadable(why))),
        }
    }

    fn skip(&mut self, path: &Path, reason: SkipReason) {
        self.loaded.skipped.push(SkippedInstruction { path: path.to_owned(), reason });
    }

    /// Adds a file and what it imports. Says whether there is such a file.
    fn add(&mut self, path: &Path, origin: InstructionOrigin, author: Author, hops: usize) -> bool {
        let read = match self.read(path, author, hops) {
            Ok(read) => read,
            Err(None) => return false,
            Err(Some(reason)) => {
                self.skip(path, reason);
                return true;
            }
        };
        if self.seen_paths.len() >= MAX_INSTRUCTION_FILES || !self.seen_paths.insert(read.real.clone()) {
            return true;
        }
        let hash = blake3::hash(&read.bytes).to_hex().to_string();
        let (text, warning) = read.text(path);
        let text = match origin {
            InstructionOrigin::Rule | InstructionOrigin::RuleForPaths(_) => parse_rule_file(&text).body,
            _ => text,
        };
        if text.trim().is_empty() || !self.seen_hashes.insert(hash.clone()) {
            return true;
        }
        let limit = self.places.limits.total_bytes;
        if self.total_bytes + text.len() > limit {
            self.skip(path, SkipReason::TotalLimit(limit));
            return true;
        }
        self.total_bytes += text.len();
        let imports = if origin == InstructionOrigin::Memory { Vec::new() } else { find_imports(&text) };
        let told = self.known.get(path);
        if told != Some(&hash) {
            let is_changed = told.is_some();
            let path = path.to_owned();
            self.loaded.parts.push(InstructionPart { path, origin, text, hash, is_changed, warning });
        }
        for import in imports {
            let Some(target) = self.import_target(path, &import) else { continue };
            if hops == MAX_IMPORT_HOPS {
                self.skip(&target, SkipReason::TooManyHops);
                continue;
            }
            self.add(&target, InstructionOrigin::ImportedBy(path.to_owned()), author, hops + 1);
        }
        true
    }

    fn import_target(&self, importer: &Path, import: &str) -> Option<PathBuf> {
        let path = match import.strip_prefix("~/") {
            Some(rest) => self.places.home.as_ref()?.join(rest),
            None => importer.parent()?.join(import),
        };
        Some(without_dots(&path))
    }
}

struct ReadInstruction {
    real: PathBuf,
    bytes: Vec<u8>,
    total_bytes: u64,
}

impl ReadInstruction {
    /// The text, cut at the end of a line if it was not read whole, and what a person should know of that.
    fn text(&self, path: &Path) -> (String, Option<String>) {
        let text = String::from_utf8_lossy(&self.bytes);
        let read = self.bytes.len();
        if self.total_bytes > read as u64 {
            let end = text.rfind('\n').map_or(text.len(), |end| end + 1);
            let cut = text.get(..end).unwrap_or(&text).trim_end_matches('\u{fffd}').to_owned();
            let warning = format!(
                "{} has {} bytes; only the first {} are used",
                path.display(),
                self.total_bytes,
                cut.len()
            );
            return (cut, Some(warning));
        }
        let is_broken = std::str::from_utf8(&self.bytes).is_err();
        let warning = is_broken
            .then(|| format!("{} is not valid UTF-8; what can't be read is replaced", path.display()));
        (text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned(), warning)
    }
}

/// The folders from the root down to a path, if it is below; the path itself is taken for one too.
fn folders_between(root: &Path, path: &Path) -> Vec<PathBuf> {
    let Ok(inside) = path.strip_prefix(root) else { return vec![root.to_owned()] };
    let mut folders = vec![root.to_owned()];
    let mut at = root.to_owned();
    for part in inside.components() {
        let Component::Normal(name) = part else { break };
        at.push(name);
        folders.push(at.clone());
    }
    folders
}

/// The same path without `.` and `..`, by its names alone. Where it leads is judged when it is resolved.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    clean
}
