//! What git knows: which files it tracks, which of them are as in its objects, and those objects.
//!
//! The program `git` is called through a launcher that jails it ([`GitProgram`]), and every wait for it is bounded: a repository
//! is made by whoever made the project. Once git did not answer in time, it is not asked again. The index is read by
//! ourselves, as no command tells what is in it both completely and fast; references that hold objects are written by
//! ourselves, so that git need not write where its settings and hooks are.

use std::ffi::OsString;
use std::io::{self, BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs as unix;

use crate::bounded_command::{BoundedCommand, is_timeout};
use crate::files::join;
use crate::git_index::{ObjectId, TrackedFile, TrackedFiles};
use crate::held_references::HeldReferences;
use crate::root::{WorkspaceRoot, common_folder, git_folder, open_file};
use crate::stat::{FileStat, FileTime, PathKind};

/// The files by which git may convert others between its objects and the folder.
pub(crate) const GITATTRIBUTES: &str = ".gitattributes";
/// Where trees are held, by the name that git has for [`HeldReferences`].
const HELD_REFERENCE_PREFIX: &str = "refs/worktree/helve";
/// Of millions of files.
const MAX_INDEX_BYTES: u64 = 512 << 20;
/// Of the names of millions of files.
const MAX_GIT_OUTPUT_BYTES: u64 = 512 << 20;
/// How long git may be silent while it works through all files or objects.
const GIT_WORK_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for what git knows without looking at files.
const GIT_FACT_TIMEOUT: Duration = Duration::from_secs(3);

/// How git is run: by a launcher that jails it, so that it can start no other program and write only what it is given.
///
/// `program leading… PLACE… -- ARGUMENT…` must run git with these arguments, and let it write only these places.
#[derive(Clone, Debug)]
pub struct GitProgram {
    /// The launcher.
    pub program: PathBuf,
    /// Its first arguments.
    pub leading: Vec<OsString>,
    /// The environment that git gets. It inherits nothing else.
    pub environment: Vec<(OsString, OsString)>,
}

impl GitProgram {
    /// What git calls itself, if it can be run.
    pub fn version(&self) -> Option<String> {
        let mut command = Command::new(&self.program);
        command.args(&self.leading).args(["--", "--version"]).current_dir("/");
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command.env_clear().envs(environment);
        let version =
            BoundedCommand { command, timeout: GIT_FACT_TIMEOUT, input: &[] }.run(read_whole_output).ok()?;
        Some(String::from_utf8_lossy(&version).trim().to_owned())
    }
}

/// What asking git for an object gave.
pub(crate) enum GitObject {
    Bytes(Vec<u8>),
    TooLarge,
    Missing,
}

#[derive(Debug)]
pub(crate) struct GitRepository {
    program: GitProgram,
    folder: PathBuf,
    /// The way from the top of the repository to the folder.
    prefix: String,
    /// Where git keeps what it knows of this worktree.
    git_folder: PathBuf,
    /// The index when it was last read.
    index: Option<FileStat>,
    tracked: TrackedFiles,
    /// Whether git was asked which of the tracked files it converts.
    knows_converted: bool,
    /// The index whose tree is held, and the reference that holds it.
    held: Option<FileStat>,
    holder: String,
    /// Why git is not asked any more.
    gave_up: OnceLock<String>,
}

/// How many workspaces of this process held something.
static HOLDER_COUNT: AtomicU32 = AtomicU32::new(0);

impl GitRepository {
    pub(crate) fn open(root: &WorkspaceRoot, program: GitProgram) -> Option<GitRepository> {
        let top = root.repository()?;
        let git_folder = git_folder(top)?;
        let prefix = root.folder().strip_prefix(top).ok()?.to_str()?.to_owned();
        Some(GitRepository {
            program,
            folder: root.folder().to_owned(),
            prefix,
            git_folder,
            index: None,
            tracked: TrackedFiles::default(),
            knows_converted: false,
            held: None,
            holder: format!("{}-{}", std::process::id(), HOLDER_COUNT.fetch_add(1, Ordering::Relaxed)),
            gave_up: OnceLock::new(),
        })
    }

    pub(crate) fn tracked(&self) -> &TrackedFiles {
        &self.tracked
    }

    fn index_file(&self) -> PathBuf {
        self.git_folder.join("index")
    }

    fn index_stat(&self) -> Option<FileStat> {
        unix::lstat(self.index_file()).ok().map(FileStat::from)
    }

    /// Reads git's index if it was written since the last time, and says whether it was. If it can't be read, nothing is
    /// known to be tracked; the objects that were known before can still be had.
    pub(crate) fn refresh(&mut self) -> io::Result<bool> {
        let index = self.index_stat();
        if index == self.index {
            return Ok(false);
        }
        self.index = index;
        self.tracked = TrackedFiles::default();
        self.knows_converted = false;
        // A new repository has no index.
        if let Some(index) = index {
            let tracked = self.read_index(index.modified)?;
            // Asked first: if git does not answer this, it answers nothing.
            let may_convert = self.may_convert()? || tracked.has_name(GITATTRIBUTES);
            self.tracked = tracked;
            if may_convert {
                self.learn_converted()?;
            }
        }
        Ok(true)
    }

    /// Learns which files git converts, if it is not known: somebody saw attributes. Says which those are. To ask takes
    /// git as long as to look at all files, and mostly there is nothing to learn.
    pub(crate) fn learn_converted(&mut self) -> io::Result<Vec<String>> {
        if self.knows_converted || self.tracked.count() == 0 {
            return Ok(Vec::new());
        }
        let mut tracked = std::mem::take(&mut self.tracked);
        let converted = self.mark_converted(&mut tracked)?;
        self.tracked = tracked;
        self.knows_converted = true;
        Ok(converted)
    }

    /// Reads git's index, and asks nothing of git.
    pub(crate) fn read_tracked(&mut self) -> io::Result<()> {
        if let Some(index) = self.index_stat() {
            self.tracked = self.read_index(index.modified)?;
        }
        Ok(())
    }

    fn read_index(&self, written: FileTime) -> io::Result<TrackedFiles> {
        let mut file = open_file(&self.index_file())?;
        if file.metadata()?.len() > MAX_INDEX_BYTES {
            return Err(io::Error::other("git's index is too large to be read"));
        }
        let strange = || io::Error::other("git's index is of a kind that Helve can't read");
        TrackedFiles::read(&mut file, &self.prefix, written)?.ok_or_else(strange)
    }

    /// Whether something besides the files named `.gitattributes` below the root could make git convert files.
    fn may_convert(&self) -> io::Result<bool> {
        // Above the root nobody looks.
        if !self.prefix.is_empty() {
            return Ok(true);
        }
        let exists = |path: &Path| std::fs::exists(path).unwrap_or(true);
        let variables = self.quick_output(&["var", "-l"])?;
        let variables = String::from_utf8_lossy(&variables);
        // A value may have several lines that look like other variables: all that speaks for a conversion counts.
        let lines = || variables.lines().map(|line| line.split_once('=').unwrap_or((line, "true")));
        let said_to_convert = lines().any(|(name, value)| match name {
            "core.autocrlf" => value != "false",
            "attr.tree" => true,
            _ => false,
        });
        let everywhere =
            |of: &'static str| lines().filter(move |(name, _)| *name == of).map(|(_, path)| path);
        let (system, own) = (everywhere("GIT_ATTR_SYSTEM"), everywhere("GIT_ATTR_GLOBAL"));
        // An older git does not tell where else it looks for attributes.
        let knows_all = system.clone().next().is_some() && own.clone().next().is_some();
        let in_repository = common_folder(&self.git_folder).join("info/attributes");
        Ok(said_to_convert
            || !knows_all
            || exists(&in_repository)
            || system.chain(own).any(|path| exists(path.as_ref())))
    }

    /// Marks the files whose bytes may differ from their object's. A filter may do anything; other line ends change
    /// the size.
    fn mark_converted(&self, tracked: &mut TrackedFiles) -> io::Result<Vec<String>> {
        const FILTERS: [&str; 3] = ["filter", "ident", "working-tree-encoding"];
        const LINE_ENDS: [&str; 3] = ["text", "eol", "crlf"];
        self.check_attributes(tracked)?;
        let mut ended = self.paths_with_any_attribute(&[FILTERS, LINE_ENDS].concat())?;
        let mut converted =
            if ended.is_empty() { Vec::new() } else { self.paths_with_any_attribute(&FILTERS)? };
        if self.changes_line_ends()? {
            ended = tracked.paths().collect();
        }
        converted.extend(self.resized(tracked, &ended)?);
        mark(tracked, &converted);
        Ok(converted)
    }

    /// Git reads what has their name beside the files that it tracks, and waits for ever where that is a pipe.
    fn check_attributes(&self, tracked: &TrackedFiles) -> io::Result<()> {
        let is_special = |folder: &str| {
            let stat = unix::lstat(self.folder.join(folder).join(GITATTRIBUTES)).map(FileStat::from);
            stat.is_ok_and(|stat| stat.kind() == PathKind::Special)
        };
        match tracked.folders().find(|folder| is_special(folder)) {
            Some(folder) => Err(io::Error::other(format!("{} is not a file", join(folder, GITATTRIBUTES)))),
            None => Ok(()),
        }
    }

    /// The tracked files for which at least one of these attributes says something.
    fn paths_with_any_attribute(&self, attributes: &[&str]) -> io::Result<Vec<String>> {
        let none: Vec<String> = attributes.iter().map(|name| format!("!{name}")).collect();
        let but_those_without = format!(":(exclude,attr:{})", none.join(" "));
        let list = self.output(&["ls-files", "-z", "--", &but_those_without])?;
        let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn changes_line_ends(&self) -> io::Result<bool> {
        let value = self.quick_output(&["config", "--get", "--default", "false", "core.autocrlf"])?;
        Ok(String::from_utf8_lossy(&value).trim() != "false")
    }

    /// Those of the files whose object has another size.
    fn resized(&self, tracked: &TrackedFiles, paths: &[String]) -> io::Result<Vec<String>> {
        let named = paths.iter().filter_map(|path| Some((path, tracked.get(path)?)));
        let (paths, files): (Vec<&String>, Vec<&TrackedFile>) = named.unzip();
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let objects: Vec<ObjectId> = files.iter().map(|file| file.object).collect();
        let mut sizes = Vec::new();
        self.ask(&["cat-file", "--batch-check=%(objectsize)", "--buffer"], &objects, |answers| {
            for line in answers.lines() {
                // A missing one has no size, so it differs.
                sizes.push(line?.trim().parse::<u64>().ok());
            }
            Ok(())
        })?;
        let sizes = sizes.into_iter().chain(std::iter::repeat(None));
        let is_other = |file: &TrackedFile, size: Option<u64>| !size.is_some_and(|size| file.has_size(size));
        let resized =
            paths.into_iter().zip(files).zip(sizes).filter(|((_, file), size)| is_other(file, *size));
        Ok(resized.map(|((path, _), _)| path.clone()).collect())
    }

    /// Tells the content of each object, in their order.
    pub(crate) fn load(
        &self,
        objects: &[ObjectId],
        max_bytes: u64,
        mut tell: impl FnMut(GitObject),
    ) -> io::Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        self.ask(&["cat-file", "--batch", "--buffer"], objects, |answers| {
            for _ in objects {
                tell(read_object(answers, max_bytes)?);
            }
            Ok(())
        })
    }

    /// Keeps the objects of the index from being forgotten, whatever a call does to the index, the branches and their
    /// logs, by a private reference to a tree of them.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        if self.tracked.count() == 0 || self.held == self.index {
            return Ok(());
        }
        // A copy: to make a tree of the index itself would lock it. In a folder by a name that nobody has put anything
        // at: commands write in git's folder too.
        let folder = tempfile::Builder::new().prefix("helve-index").tempdir_in(&self.git_folder)?;
        let copy = folder.path().join("index");
        io::copy(&mut open_file(&self.index_file())?, &mut std::fs::File::create_new(&copy)?)?;
        let objects = common_folder(&self.git_folder).join("objects");
        let writable = [folder.path(), &objects];
        let write_tree = || self.output_with(&["write-tree", "--missing-ok"], &copy, &writable, &[]);
        // Files in conflict are in no tree, and are kept by content in any case.
        let tree =
            write_tree().or_else(|_| self.drop_conflicts(&copy, &writable).and_then(|()| write_tree()));
        let tree = ObjectId::parse(String::from_utf8_lossy(&tree?).trim());
        let tree = tree.ok_or_else(|| io::Error::other("git made no tree"))?;
        match self.reference_table() {
            Some(table) => {
                let holder = format!("{HELD_REFERENCE_PREFIX}/{}", self.holder);
                let update = ["update-ref", &holder, &tree.to_string()];
                self.run_bounded(self.command(&update, &[&table]), GIT_WORK_TIMEOUT, &[], read_whole_output)?;
            }
            None => {
                let references = HeldReferences::of(&self.git_folder)?;
                if self.held.is_none() {
                    references.remove_stale();
                }
                references.set(&self.holder, tree)?;
            }
        }
        self.held = self.index;
        Ok(())
    }

    /// The folder in which git keeps references if they are no files of their own.
    fn reference_table(&self) -> Option<PathBuf> {
        let table = self.git_folder.join("reftable");
        table.symlink_metadata().is_ok_and(|table| table.is_dir()).then_some(table)
    }

    /// Takes the files that are in conflict out of a copy of the index.
    fn drop_conflicts(&self, copy: &Path, writable: &[&Path]) -> io::Result<()> {
        let list = self.output_with(&["ls-files", "--unmerged", "-z", ":/"], copy, writable, &[])?;
        let after_tab = |line: &[u8]| line.splitn(2, |byte| *byte == b'\t').nth(1).map(<[u8]>::to_vec);
        let mut names: Vec<Vec<u8>> = list.split(|byte| *byte == 0).filter_map(after_tab).collect();
        names.dedup();
        let names = [names.join(&0), vec![0]].concat();
        let remove = ["update-index", "--force-remove", "-z", "--stdin"];
        self.output_with(&remove, copy, writable, &names).map(drop)
    }

    fn release(&mut self) {
        if self.held.take().is_none() {
            return;
        }
        if let Some(table) = self.reference_table() {
            let holder = format!("{HELD_REFERENCE_PREFIX}/{}", self.holder);
            let delete = self.command(&["update-ref", "-d", &holder], &[&table]);
            let _ = self.run_bounded(delete, GIT_FACT_TIMEOUT, &[], read_whole_output);
        } else if let Ok(references) = HeldReferences::of(&self.git_folder) {
            references.remove(&self.holder);
        }
    }

    fn command(&self, arguments: &[&str], writable: &[&Path]) -> Command {
        let is_plain = |name: &OsString| !name.as_bytes().starts_with(b"GIT_");
        let environment = self.program.environment.iter().filter(|(name, _)| is_plain(name));
        let mut command = Command::new(&self.program.program);
        command
            .env_clear()
            .envs(environment.map(|(name, value)| (name, value)))
            .env("LC_ALL", "C")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .args(&self.program.leading)
            .args(writable)
            .arg("--")
            // The jail lets none of these run; without them git need not try.
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "--no-pager"])
            .arg("-C")
            .arg(&self.folder)
            .args(arguments);
        command
    }

    /// What git says, if it says it in time and ends well.
    fn output(&self, arguments: &[&str]) -> io::Result<Vec<u8>> {
        self.run_bounded(self.command(arguments, &[]), GIT_WORK_TIMEOUT, &[], read_whole_output)
    }

    /// The same for what needs no look at files.
    fn quick_output(&self, arguments: &[&str]) -> io::Result<Vec<u8>> {
        self.run_bounded(self.command(arguments, &[]), GIT_FACT_TIMEOUT, &[], read_whole_output)
    }

    /// The same with another index, places to write, and something to read.
    fn output_with(
        &self,
        arguments: &[&str],
        index: &Path,
        writable: &[&Path],
        input: &[u8],
    ) -> io::Result<Vec<u8>> {
        let mut command = self.command(arguments, writable);
        command.env("GIT_INDEX_FILE", index);
        self.run_bounded(command, GIT_WORK_TIMEOUT, input, read_whole_output)
    }

    /// Asks for many objects at once and reads the answers as they come.
    fn ask(
        &self,
        arguments: &[&str],
        objects: &[ObjectId],
        read: impl FnOnce(&mut dyn BufRead) -> io::Result<()>,
    ) -> io::Result<()> {
        let lines: String = objects.iter().map(|object| format!("{object}\n")).collect();
        self.run_bounded(self.command(arguments, &[]), GIT_WORK_TIMEOUT, lines.as_bytes(), read)
    }

    /// Runs git, unless it did not answer before: whatever has the names that git reads, such as a pipe, is still there.
    fn run_bounded<T>(
        &self,
        command: Command,
        timeout: Duration,
        input: &[u8],
        read: impl FnOnce(&mut dyn BufRead) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some(why) = self.gave_up.get() {
            return Err(io::Error::other(why.clone()));
        }
        let done = BoundedCommand { command, timeout, input }.run(read);
        if let Err(error) = &done
            && is_timeout(error)
        {
            let _ = self.gave_up.set(error.to_string());
        }
        done
    }

    /// The branch that is checked out, where only git can tell.
    pub(crate) fn current_branch(&self) -> io::Result<String> {
        let name = self.quick_output(&["branch", "--show-current"])?;
        Ok(String::from_utf8_lossy(&name).trim().to_owned())
    }

    /// Whether something below the root is staged that is not in the last commit.
    pub(crate) fn has_staged(&self) -> io::Result<bool> {
        // What differs is listed; an exit code could not be told from others.
        let arguments = ["diff-index", "--cached", "--name-only", "--no-ext-diff", "--no-renames"];
        let list = self.quick_output(&[&arguments[..], &["HEAD", "--", "."]].concat())?;
        Ok(!list.is_empty())
    }
}

fn read_whole_output(answers: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    answers.take(MAX_GIT_OUTPUT_BYTES).read_to_end(&mut all)?;
    Ok(all)
}

impl Drop for GitRepository {
    fn drop(&mut self) {
        self.release();
    }
}

fn mark(tracked: &mut TrackedFiles, paths: &[String]) {
    for path in paths {
        if let Some(file) = tracked.get_mut(path) {
            file.is_converted = true;
        }
    }
}

/// An answer of `cat-file --batch`: `<object> blob <size>`, the bytes, a line end; or `<object> missing`.
fn read_object(answers: &mut dyn BufRead, max_bytes: u64) -> io::Result<GitObject> {
    let mut head = String::new();
    if answers.read_line(&mut head)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let size = head.trim_end().rsplit_once(' ').and_then(|(_, size)| size.parse::<u64>().ok());
    let Some(size) = size else { return Ok(GitObject::Missing) };
    let object = if size > max_bytes {
        io::copy(&mut answers.take(size), &mut io::sink())?;
        GitObject::TooLarge
    } else {
        let mut bytes = Vec::new();
        answers.take(size).read_to_end(&mut bytes)?;
        GitObject::Bytes(bytes)
    };
    answers.read_exact(&mut [0])?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_are_read_one_by_one() {
        let mut answers = &b"aa blob 3\nabc\nbb missing\ncc blob 5\n12345\ndd blob 0\n\n"[..];
        let mut next = || read_object(&mut answers, 4).unwrap();
        assert!(matches!(next(), GitObject::Bytes(bytes) if bytes == b"abc"));
        assert!(matches!(next(), GitObject::Missing));
        assert!(matches!(next(), GitObject::TooLarge));
        assert!(matches!(next(), GitObject::Bytes(bytes) if bytes.is_empty()));
        assert!(read_object(&mut answers, 4).is_err());
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_object(&mut bytes.as_slice(), 64);
        }
    }
}
