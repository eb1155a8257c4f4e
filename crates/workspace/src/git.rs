//! What git knows: which files it tracks, which of them are as in its objects, and those objects.
//!
//! The program `git` is called; nothing that a repository could make it run (hooks, monitors, filters) is run. Only the index
//! is read by ourselves, as no command tells what is in it both completely and fast.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs as unix;
use rustix::process::{Pid, Signal, kill_process};

use crate::root::{Root, common_folder, git_folder};
use crate::stat::{Moment, Stat};
use crate::tracked::{ObjectId, Tracked, TrackedFile};

/// The files by which git may convert others between its objects and the folder.
pub(crate) const ATTRIBUTES: &str = ".gitattributes";
/// Where trees are held while a call may make git forget their objects. Each worktree has its own, and each workspace one
/// in it, by the number of its process.
const HELD: &str = "refs/worktree/helve";
/// Of millions of files.
const MAX_INDEX_BYTES: u64 = 1 << 30;
/// So long git may take to answer.
const LONGEST: Duration = Duration::from_secs(60);
const MAX_ERROR_CHARS: usize = 300;

/// The program and the environment that it gets.
#[derive(Clone, Debug)]
pub struct GitProgram {
    pub program: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
}

/// What asking git for an object gave.
pub(crate) enum Object {
    Bytes(Vec<u8>),
    TooLarge,
    Missing,
}

#[derive(Debug)]
pub(crate) struct Git {
    program: GitProgram,
    folder: PathBuf,
    /// The way from the top of the repository to the folder.
    prefix: String,
    /// Where git keeps what it knows of this worktree.
    git_folder: PathBuf,
    /// The index when it was last read.
    index: Option<Stat>,
    tracked: Tracked,
    /// Whether git was asked which of the tracked files it converts.
    knows_converted: bool,
    /// The index whose tree is held, and the reference that holds it.
    held: Option<Stat>,
    holder: String,
}

/// How many workspaces of this process held something.
static HOLDERS: AtomicU32 = AtomicU32::new(0);

impl Git {
    pub(crate) fn open(root: &Root, program: GitProgram) -> Option<Git> {
        let top = root.repository()?;
        let git_folder = git_folder(top)?;
        let prefix = root.folder().strip_prefix(top).ok()?.to_str()?.to_owned();
        Some(Git {
            program,
            folder: root.folder().to_owned(),
            prefix,
            git_folder,
            index: None,
            tracked: Tracked::default(),
            knows_converted: false,
            held: None,
            holder: format!("{HELD}/{}-{}", std::process::id(), HOLDERS.fetch_add(1, Ordering::Relaxed)),
        })
    }

    pub(crate) fn tracked(&self) -> &Tracked {
        &self.tracked
    }

    fn index_file(&self) -> PathBuf {
        self.git_folder.join("index")
    }

    fn index_stat(&self) -> Option<Stat> {
        unix::lstat(self.index_file()).ok().map(Stat::from)
    }

    /// Reads git's index if it was written since the last time, and says whether it was. If it can't be read, nothing is
    /// known to be tracked; the objects that were known before can still be had.
    pub(crate) fn refresh(&mut self) -> io::Result<bool> {
        let index = self.index_stat();
        if index == self.index {
            return Ok(false);
        }
        self.index = index;
        self.tracked = Tracked::default();
        self.knows_converted = false;
        // A new repository has no index.
        if let Some(index) = index {
            let tracked = self.read_index(index.modified)?;
            let may_convert = tracked.has_name(ATTRIBUTES) || self.may_convert()?;
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
        if self.knows_converted {
            return Ok(Vec::new());
        }
        let mut tracked = std::mem::take(&mut self.tracked);
        let converted = self.mark_converted(&mut tracked)?;
        self.tracked = tracked;
        self.knows_converted = true;
        Ok(converted)
    }

    fn read_index(&self, written: Moment) -> io::Result<Tracked> {
        let file = self.open_index()?;
        let size = file.metadata()?.len().min(MAX_INDEX_BYTES);
        let mut index = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        file.take(MAX_INDEX_BYTES).read_to_end(&mut index)?;
        let strange = || io::Error::other("git's index is of a kind that Helve can't read");
        Tracked::read(&index, &self.prefix, written).ok_or_else(strange)
    }

    /// Whether something besides the files named `.gitattributes` below the root could make git convert files.
    fn may_convert(&self) -> io::Result<bool> {
        // Above the root nobody looks.
        if !self.prefix.is_empty() {
            return Ok(true);
        }
        let exists = |path: &Path| std::fs::exists(path).unwrap_or(true);
        let variables = self.output(&["var", "-l"])?;
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
    fn mark_converted(&self, tracked: &mut Tracked) -> io::Result<Vec<String>> {
        const FILTERS: [&str; 3] = ["filter", "ident", "working-tree-encoding"];
        const LINE_ENDS: [&str; 3] = ["text", "eol", "crlf"];
        let mut ended = self.with_any_of(&[FILTERS, LINE_ENDS].concat())?;
        let mut converted = if ended.is_empty() { Vec::new() } else { self.with_any_of(&FILTERS)? };
        if self.changes_line_ends()? {
            ended = tracked.paths().collect();
        }
        converted.extend(self.resized(tracked, &ended)?);
        mark(tracked, &converted);
        Ok(converted)
    }

    /// The tracked files for which at least one of these attributes says something.
    fn with_any_of(&self, attributes: &[&str]) -> io::Result<Vec<String>> {
        let none: Vec<String> = attributes.iter().map(|name| format!("!{name}")).collect();
        let but_those_without = format!(":(exclude,attr:{})", none.join(" "));
        let list = self.output(&["ls-files", "-z", "--", &but_those_without])?;
        let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn changes_line_ends(&self) -> io::Result<bool> {
        let value = self.output(&["config", "--get", "--default", "false", "core.autocrlf"])?;
        Ok(String::from_utf8_lossy(&value).trim() != "false")
    }

    /// Those of the files whose object has another size.
    fn resized(&self, tracked: &Tracked, paths: &[String]) -> io::Result<Vec<String>> {
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
        mut tell: impl FnMut(Object),
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

    /// The index, if it is a file: whoever writes to this folder could have put a pipe there.
    fn open_index(&self) -> io::Result<std::fs::File> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        let flags = i32::try_from(flags).unwrap_or_default();
        let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(self.index_file())?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("git's index is no file")),
        }
    }

    /// Keeps the objects of the index from being forgotten, whatever a call does to the index, the branches and their
    /// logs, by a private reference to a tree of them.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        if self.index.is_none() || self.held == self.index {
            return Ok(());
        }
        // A copy: to make a tree of the index itself would lock it.
        // By a name that nobody has put anything at: commands write in this folder too.
        let mut copy = tempfile::Builder::new().prefix("helve-index").tempfile_in(&self.git_folder)?;
        io::copy(&mut self.open_index()?, &mut copy)?;
        let write_tree = || self.output_with(&["write-tree", "--missing-ok"], copy.path(), Vec::new());
        // Files in conflict are in no tree, and are kept by content in any case.
        let tree = write_tree().or_else(|_| self.drop_conflicts(copy.path()).and_then(|()| write_tree()));
        drop(copy);
        let tree = String::from_utf8_lossy(&tree?).trim().to_owned();
        if self.held.is_none() {
            self.release_those_of_the_dead();
        }
        self.output(&["update-ref", &self.holder, &tree])?;
        self.held = self.index;
        Ok(())
    }

    /// Takes the files that are in conflict out of a copy of the index.
    fn drop_conflicts(&self, copy: &Path) -> io::Result<()> {
        let list = self.output_with(&["ls-files", "--unmerged", "-z", ":/"], copy, Vec::new())?;
        let after_tab = |line: &[u8]| line.splitn(2, |byte| *byte == b'\t').nth(1).map(<[u8]>::to_vec);
        let mut names: Vec<Vec<u8>> = list.split(|byte| *byte == 0).filter_map(after_tab).collect();
        names.dedup();
        let names = [names.join(&0), vec![0]].concat();
        self.output_with(&["update-index", "--force-remove", "-z", "--stdin"], copy, names).map(drop)
    }

    /// Lets go what processes held that were killed.
    fn release_those_of_the_dead(&self) {
        let held = self.output(&["for-each-ref", "--format=%(refname)", HELD]).unwrap_or_default();
        let is_of_the_dead = |name: &&str| {
            let holder = name.strip_prefix(HELD).and_then(|rest| rest.strip_prefix('/'));
            let process = holder.and_then(|holder| holder.split_once('-')?.0.parse::<u32>().ok());
            !process.is_some_and(|process| Path::new(&format!("/proc/{process}")).exists())
        };
        for name in String::from_utf8_lossy(&held).lines().filter(is_of_the_dead) {
            let _ = self.output(&["update-ref", "-d", name]);
        }
    }

    fn release(&mut self) {
        if self.held.take().is_some() {
            let _ = self.output(&["update-ref", "-d", &self.holder]);
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
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
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
            .arg("-C")
            .arg(&self.folder)
            .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn output(&self, arguments: &[&str]) -> io::Result<Vec<u8>> {
        run(self.command(arguments), Vec::new())
    }

    /// The same with another index, and with something to read.
    fn output_with(&self, arguments: &[&str], index: &Path, input: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut command = self.command(arguments);
        command.env("GIT_INDEX_FILE", index);
        run(command, input)
    }

    /// Asks for many objects at once and reads the answers as they come.
    fn ask(
        &self,
        arguments: &[&str],
        objects: &[ObjectId],
        read: impl FnOnce(&mut dyn BufRead) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut command = self.command(arguments);
        let mut git = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(mut questions), Some(answers)) = (git.stdin.take(), git.stdout.take()) else {
            return end(git);
        };
        let done = thread::scope(|scope| {
            scope.spawn(move || {
                let lines: String = objects.iter().map(|object| format!("{object}\n")).collect();
                // If git is gone, the missing answers say so.
                let _ = questions.write_all(lines.as_bytes());
            });
            read(&mut BufReader::new(answers))
        });
        end(git).and(done)
    }
}

impl Drop for Git {
    fn drop(&mut self) {
        self.release();
    }
}

/// Runs git to its end, unless that takes too long: whatever a project has by the names that git reads, such as a pipe, must
/// not stop everything.
fn run(mut command: Command, input: Vec<u8>) -> io::Result<Vec<u8>> {
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut git = command.stdin(stdin).spawn()?;
    let id = i32::try_from(git.id()).ok().and_then(Pid::from_raw);
    let questions = git.stdin.take();
    let (sender, done) = mpsc::channel();
    thread::Builder::new().name("git".to_owned()).spawn(move || {
        if let Some(mut questions) = questions {
            let _ = questions.write_all(&input);
        }
        let _ = sender.send(git.wait_with_output());
    })?;
    match done.recv_timeout(LONGEST) {
        Ok(output) => output.and_then(successful),
        Err(_) => {
            // It has not been waited for, so the number is still its own.
            let _ = id.map(|id| kill_process(id, Signal::KILL));
            Err(io::Error::other("git did not answer in time"))
        }
    }
}

fn end(mut git: Child) -> io::Result<()> {
    git.wait().map(|_| ())
}

fn mark(tracked: &mut Tracked, paths: &[String]) {
    for path in paths {
        if let Some(file) = tracked.get_mut(path) {
            file.is_converted = true;
        }
    }
}

fn successful(output: Output) -> io::Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(MAX_ERROR_CHARS).collect();
    Err(io::Error::other(if said.is_empty() { output.status.to_string() } else { said }))
}

/// An answer of `cat-file --batch`: `<object> blob <size>`, the bytes, a line end; or `<object> missing`.
fn read_object(answers: &mut dyn BufRead, max_bytes: u64) -> io::Result<Object> {
    let mut head = String::new();
    if answers.read_line(&mut head)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let size = head.trim_end().rsplit_once(' ').and_then(|(_, size)| size.parse::<u64>().ok());
    let Some(size) = size else { return Ok(Object::Missing) };
    let object = if size > max_bytes {
        io::copy(&mut answers.take(size), &mut io::sink())?;
        Object::TooLarge
    } else {
        let mut bytes = Vec::new();
        answers.take(size).read_to_end(&mut bytes)?;
        Object::Bytes(bytes)
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
        assert!(matches!(next(), Object::Bytes(bytes) if bytes == b"abc"));
        assert!(matches!(next(), Object::Missing));
        assert!(matches!(next(), Object::TooLarge));
        assert!(matches!(next(), Object::Bytes(bytes) if bytes.is_empty()));
        assert!(read_object(&mut answers, 4).is_err());
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_object(&mut bytes.as_slice(), 64);
        }
    }
}
