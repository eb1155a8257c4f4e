//! Reads contents, keeps them in the blobs, and gets them back from git.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use helve_protocol::{BlobId, UnkeptReason};

use super::{Workspace, is_content_known};
use crate::diff::{DiffBudget, count_lines};
use crate::effects::{PathEffect, PathSnapshot, UnkeptPath};
use crate::error::{PathContext, WorkspaceResult};
use crate::files::{FileReadOutcome, is_absence, read_in, stat_in};
use crate::git::GitObject;
use crate::git_index::ObjectId;
use crate::index::{ContentSource, PathRecord, PathTransition};
use crate::stat::{FileStat, FileTime, PathKind};
use crate::walk::threads;

/// Fewer files are not worth another thread.
const MIN_FILES_PER_THREAD: usize = 16;

/// What to do with a content that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepMode {
    InBlobs,
    /// Only its hash.
    HashOnly,
    /// In the blobs, unless it is this one.
    InBlobsUnless(BlobId),
    /// Nothing: it can't be reached by its name.
    Nothing,
}

/// A content that is to be read.
#[derive(Debug)]
pub(super) struct ContentRequest {
    pub(super) path: String,
    pub(super) stat: FileStat,
    pub(super) keep: KeepMode,
}

/// What reading gave, with the place of its path in the list.
type NumberedRecord = (usize, Option<PathRecord>);

impl Workspace {
    /// Reads many contents, several at a time. The entries come in the same order; none if the file is gone.
    pub(super) fn read_all(
        &self,
        wanted: &[ContentRequest],
        now: FileTime,
    ) -> WorkspaceResult<Vec<Option<PathRecord>>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(one) = wanted.get(at) else { return Ok(done) };
                match self.read(one, now) {
                    Ok(entry) => done.push((at, entry)),
                    Err(error) => {
                        // Nobody needs the rest.
                        next.store(wanted.len(), Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        };
        let count = threads().min(wanted.len() / MIN_FILES_PER_THREAD + 1);
        let parts: Vec<WorkspaceResult<Vec<NumberedRecord>>> = thread::scope(|scope| {
            let workers: Vec<_> = (1..count).map(|_| scope.spawn(work)).collect();
            let own = work();
            workers.into_iter().filter_map(|worker| worker.join().ok()).chain([own]).collect()
        });
        let mut all = parts.into_iter().collect::<WorkspaceResult<Vec<_>>>()?.concat();
        all.sort_by_key(|(at, _)| *at);
        Ok(all.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Keeps some of the files whose content is nowhere else yet, and says whether there may be more.
    pub fn keep_some(&mut self, most: usize) -> WorkspaceResult<bool> {
        let is_open = |entry: &PathRecord| {
            entry.source == ContentSource::Unread && entry.stat.kind() != PathKind::Special
        };
        let open = self.index.entries.iter().filter(|(_, entry)| is_open(entry)).take(most);
        let wanted: Vec<ContentRequest> = open
            .map(|(path, entry)| ContentRequest {
                path: path.clone(),
                stat: entry.stat,
                keep: KeepMode::InBlobs,
            })
            .collect();
        let read = self.read_all(&wanted, self.now())?;
        for (ContentRequest { path, .. }, read) in wanted.iter().zip(read) {
            match (self.index.entries.get_mut(path), read) {
                // What changed since it was seen, the next look finds; then it is kept.
                (Some(entry), Some(read)) if entry.stat == read.stat => entry.adopt_read_content(read),
                (Some(entry), _) => entry.source = ContentSource::Unavailable(UnkeptReason::NotReadBefore),
                (None, _) => {}
            }
        }
        if let Some(notes) = &mut self.notes {
            notes.open(wanted.iter().map(|wanted| wanted.path.as_str()));
        }
        Ok(wanted.len() == most)
    }

    fn read(&self, wanted: &ContentRequest, now: FileTime) -> WorkspaceResult<Option<PathRecord>> {
        let ContentRequest { path, stat, keep } = wanted;
        if *keep == KeepMode::Nothing {
            return Ok(Some(PathRecord::new(
                *stat,
                now,
                ContentSource::Unavailable(UnkeptReason::NotUnicode),
            )));
        }
        let content = self.files.read(path, stat, self.limits.max_file_bytes);
        self.entry_of(content, *stat, *keep, now)
    }

    /// What becomes of a content that was read, or could not be.
    fn entry_of(
        &self,
        content: FileReadOutcome,
        stat: FileStat,
        keep: KeepMode,
        now: FileTime,
    ) -> WorkspaceResult<Option<PathRecord>> {
        let nowhere = |why| Ok(Some(PathRecord::new(stat, now, ContentSource::Unavailable(why))));
        match content {
            FileReadOutcome::Gone => Ok(None),
            FileReadOutcome::TooLarge => nowhere(UnkeptReason::TooLarge),
            FileReadOutcome::Special => nowhere(UnkeptReason::Special),
            FileReadOutcome::Unreadable => nowhere(UnkeptReason::Unreadable),
            FileReadOutcome::Read(stat, bytes) => {
                let hash = BlobId::from_hash(*blake3::hash(&bytes).as_bytes());
                let source = match keep {
                    KeepMode::HashOnly | KeepMode::Nothing => ContentSource::Unread,
                    KeepMode::InBlobsUnless(known) if known == hash => ContentSource::Unread,
                    KeepMode::InBlobs | KeepMode::InBlobsUnless(_) => self.put(&bytes)?,
                };
                Ok(Some(PathRecord { hash: Some(hash), ..PathRecord::new(stat, now, source) }))
            }
        }
    }

    fn put(&self, bytes: &[u8]) -> WorkspaceResult<ContentSource> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let before = self.kept_bytes.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > self.limits.max_kept_bytes {
            let is_wanted = self.limits.max_kept_bytes > 0;
            let why = if is_wanted { UnkeptReason::WorkspaceTooLarge } else { UnkeptReason::KeepingDisabled };
            return Ok(ContentSource::Unavailable(why));
        }
        // Safe on disk when the call that may change it is noted to begin.
        self.blobs.put_unsynced(bytes)?;
        Ok(ContentSource::Blobs)
    }

    /// What a path holds now, with its content kept; none if there is neither a file nor a link.
    pub(super) fn read_path(&self, path: &str) -> WorkspaceResult<Option<PathRecord>> {
        match self.files.open_parent(path) {
            Ok((folder, _)) => self.read_path_in(&folder, path),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error).at(self.files.absolute(path)),
        }
    }

    /// The same for a path whose folder is open.
    pub(super) fn read_path_in(&self, folder: &OwnedFd, path: &str) -> WorkspaceResult<Option<PathRecord>> {
        let Some(PathRecord { stat, seen: now, .. }) = self.stat_path_in(folder, path)? else {
            return Ok(None);
        };
        match self.index.entries.get(path) {
            Some(known) if known.source == ContentSource::Blobs && !known.is_in_doubt(&stat) => {
                Ok(Some(known.clone()))
            }
            _ => {
                let content = read_in(folder, name_in_folder(path), &stat, self.limits.max_file_bytes);
                self.entry_of(content, stat, KeepMode::InBlobs, now)
            }
        }
    }

    /// What a path holds now whose folder is open, without its content.
    pub(super) fn stat_path_in(&self, folder: &OwnedFd, path: &str) -> WorkspaceResult<Option<PathRecord>> {
        let stat = match stat_in(folder, name_in_folder(path)) {
            Err(error) if is_absence(&error) => None,
            stat => Some(stat.at(self.files.absolute(path))?),
        };
        let stat = stat.filter(|stat| stat.kind() != PathKind::Folder);
        Ok(stat.map(|stat| PathRecord::new(stat, self.now(), ContentSource::Unread)))
    }

    /// The hashes of the contents that are in git, without keeping them.
    pub(super) fn learn_hashes(&self, pairs: &mut [PathTransition]) {
        let mut asked: Vec<(ObjectId, &mut Option<BlobId>)> = Vec::new();
        for pair in pairs {
            if let Some(PathRecord { hash: hash @ None, source: ContentSource::Git(object), .. }) =
                pair.before.as_mut()
            {
                asked.push((*object, hash));
            }
        }
        let (objects, hashes): (Vec<ObjectId>, Vec<&mut Option<BlobId>>) = asked.into_iter().unzip();
        let mut hashes = hashes.into_iter();
        self.load_from_git(&objects, |object| {
            if let (Some(hash), GitObject::Bytes(bytes)) = (hashes.next(), object) {
                *hash = Some(BlobId::from_hash(*blake3::hash(&bytes).as_bytes()));
            }
        });
    }

    /// If git fails, what was not told is missing.
    fn load_from_git(&self, objects: &[ObjectId], tell: impl FnMut(GitObject)) {
        if let Some(git) = &self.git {
            let _ = git.load(objects, self.limits.max_file_bytes, tell);
        }
    }

    /// What the differences mean: with both contents kept, as far as they can be, and what is lost. If that can't be said
    /// now, the next look finds the same differences.
    pub(super) fn effects_of(
        &mut self,
        pairs: Vec<PathTransition>,
    ) -> WorkspaceResult<(Vec<PathEffect>, Vec<UnkeptPath>)> {
        let effects = self.try_effects_of(&pairs);
        if effects.is_err() {
            pairs.into_iter().for_each(|PathTransition { path, before, .. }| self.set(&path, before));
        }
        effects
    }

    fn try_effects_of(
        &self,
        pairs: &[PathTransition],
    ) -> WorkspaceResult<(Vec<PathEffect>, Vec<UnkeptPath>)> {
        let from_git = self.copy_from_git(pairs)?;
        let mut effects = Vec::with_capacity(pairs.len());
        let mut lost = Vec::new();
        let mut patience = DiffBudget::default();
        for PathTransition { path, before, after } in pairs {
            let image = |entry: &Option<PathRecord>| entry.as_ref().map(|entry| image_of(entry, &from_git));
            let (was, is) = (image(before), image(after));
            if let (Some(before), Some(PathSnapshot { content: None, .. })) = (before, was) {
                let why = before.why_not_kept().unwrap_or(UnkeptReason::GoneFromGit);
                lost.push(UnkeptPath { path: path.clone(), why });
            }
            let (added_lines, removed_lines) = self.count_changed_lines(was, is, &mut patience)?;
            effects.push(PathEffect {
                path: path.clone(),
                before: was,
                after: is,
                added_lines,
                removed_lines,
            });
        }
        Ok((effects, lost))
    }

    /// Copies the contents that are in git to the blobs. Those that git does not have any more are missing, also those
    /// that are not as long as the file was: something stood between the file and its object.
    fn copy_from_git(&self, pairs: &[PathTransition]) -> WorkspaceResult<HashMap<ObjectId, BlobId>> {
        let entries = pairs.iter().flat_map(|pair| [&pair.before, &pair.after]).flatten();
        let in_git = entries.filter_map(|entry| match &entry.source {
            ContentSource::Git(object) => Some((*object, entry.stat.size)),
            _ => None,
        });
        let sizes: HashMap<ObjectId, u64> = in_git.collect();
        let (objects, sizes): (Vec<ObjectId>, Vec<u64>) = sizes.into_iter().unzip();
        let mut asked = objects.iter().zip(sizes);
        let mut copied = HashMap::new();
        let mut failure = None;
        self.load_from_git(&objects, |loaded| {
            let (Some((object, size)), GitObject::Bytes(bytes)) = (asked.next(), loaded) else { return };
            if u64::try_from(bytes.len()) == Ok(size) && failure.is_none() {
                match self.blobs.put_unsynced(&bytes) {
                    Ok(blob) => drop(copied.insert(*object, blob)),
                    Err(error) => failure = Some(error),
                }
            }
        });
        failure.map_or(Ok(copied), |error| Err(error.into()))
    }

    fn count_changed_lines(
        &self,
        before: Option<PathSnapshot>,
        after: Option<PathSnapshot>,
        patience: &mut DiffBudget,
    ) -> WorkspaceResult<(u64, u64)> {
        if !is_content_known(before) || !is_content_known(after) {
            return Ok((0, 0));
        }
        let content = |image: Option<PathSnapshot>| match image.and_then(|image| image.content) {
            Some(blob) => self.blobs.get(blob),
            None => Ok(Vec::new()),
        };
        Ok(count_lines(&content(before)?, &content(after)?, patience))
    }
}

/// The last name of a path.
fn name_in_folder(path: &str) -> &OsStr {
    OsStr::new(path.rsplit('/').next().unwrap_or(path))
}

fn image_of(entry: &PathRecord, from_git: &HashMap<ObjectId, BlobId>) -> PathSnapshot {
    let content = match &entry.source {
        ContentSource::Blobs => entry.hash,
        ContentSource::Git(object) => from_git.get(object).copied(),
        ContentSource::Unread | ContentSource::Unavailable(_) => None,
    };
    PathSnapshot { mode: entry.stat.mode, content }
}
