//! What was last seen of each path, and how that compares with what is there now. Nothing is read here.

use std::collections::{HashMap, HashSet};

use helve_protocol::{BlobId, UnkeptReason};

use crate::files::folders_of;
use crate::git_index::{ObjectId, TrackedFiles};
use crate::stat::{FileStat, FileTime};
use crate::walk::{FoundFile, FoundReceiver, UnseenFolder, WalkSummary};

/// Where the content of a file can be had from later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentSource {
    /// Nowhere yet.
    Unread,
    /// The blobs, by the entry's hash.
    Blobs,
    Git(ObjectId),
    Unavailable(UnkeptReason),
}

/// A path as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathRecord {
    pub(crate) stat: FileStat,
    /// When it was looked at, for knowing whether the stat can be trusted.
    pub(crate) seen: FileTime,
    /// Of the content, when it is known.
    pub(crate) hash: Option<BlobId>,
    pub(crate) source: ContentSource,
}

impl PathRecord {
    pub(crate) fn new(stat: FileStat, seen: FileTime, source: ContentSource) -> PathRecord {
        PathRecord { stat, seen, hash: None, source }
    }

    pub(crate) fn is_ignored(&self) -> bool {
        self.source == ContentSource::Unavailable(UnkeptReason::Ignored)
    }

    pub(crate) fn is_racy(&self) -> bool {
        self.stat.is_racy_at(self.seen)
    }

    pub(crate) fn why_not_kept(&self) -> Option<UnkeptReason> {
        match self.source {
            ContentSource::Unavailable(why) => Some(why),
            ContentSource::Unread => Some(UnkeptReason::NotReadBefore),
            ContentSource::Blobs | ContentSource::Git(_) => None,
        }
    }

    /// Learns what reading found. If the file changed since it was seen, the next look will find that.
    pub(crate) fn adopt_read_content(&mut self, read: PathRecord) {
        match self.source {
            ContentSource::Git(_) if self.stat == read.stat => self.hash = read.hash,
            ContentSource::Git(_) => {}
            _ => *self = read,
        }
    }

    /// Whether the content has to be read to know that it is still the same.
    pub(crate) fn is_in_doubt(&self, now: &FileStat) -> bool {
        let can_compare = self.hash.is_some() || !matches!(self.source, ContentSource::Unavailable(_));
        self.stat != *now || (can_compare && self.is_racy())
    }
}

/// Something for each path. Looking one up must be fast, there are many; nobody can guess the seed.
pub(crate) type PathMap<T> = HashMap<String, T, foldhash::fast::RandomState>;

/// All that was last seen.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceIndex {
    pub(crate) entries: PathMap<PathRecord>,
    pub(crate) ignored_folders: HashSet<String>,
    /// The folders that have a `.git`.
    pub(crate) repositories: HashSet<String>,
    /// Folders that could not be looked into.
    pub(crate) unseen: Vec<UnseenFolder>,
    /// When; none before the first look.
    pub(crate) seen: Option<FileTime>,
}

impl WorkspaceIndex {
    pub(crate) fn set(&mut self, path: &str, entry: Option<PathRecord>) {
        match entry {
            Some(entry) => drop(self.entries.insert(path.to_owned(), entry)),
            None => drop(self.entries.remove(path)),
        }
    }

    /// Whether a file by that path would have been seen, if there was one.
    pub(crate) fn covers(&self, path: &str) -> bool {
        self.seen.is_some() && !path.starts_with('/') && !self.hides(path)
    }

    /// Whether a path is in an ignored folder, so that nobody knows what is there.
    pub(crate) fn hides(&self, path: &str) -> bool {
        folders_of(path).any(|folder| self.ignored_folders.contains(folder))
    }
}

/// A path with what it was, if there was something, and what it is now.
#[derive(Clone, Debug)]
pub(crate) struct PathTransition {
    pub(crate) path: String,
    pub(crate) before: Option<PathRecord>,
    pub(crate) after: Option<PathRecord>,
}

/// A path that was seen before and was not met.
#[derive(Debug)]
pub(crate) struct MissingPath {
    pub(crate) path: String,
    pub(crate) entry: PathRecord,
    /// It was watched although it is where nobody looks.
    pub(crate) was_hidden: bool,
}

/// What a look knows besides what it sees.
pub(crate) struct ScanContext<'t> {
    pub(crate) now: FileTime,
    pub(crate) tracked: &'t TrackedFiles,
    /// Git tracks something else than at the last look.
    pub(crate) is_git_new: bool,
}

impl ScanContext<'_> {
    /// An entry for what was not known, with what is known of its content's source without reading it.
    fn new_record(&self, found: &FoundFile) -> PathRecord {
        let source = match found {
            FoundFile { is_sayable: false, .. } => ContentSource::Unavailable(UnkeptReason::NotUnicode),
            FoundFile { is_ignored: true, .. } => ContentSource::Unavailable(UnkeptReason::Ignored),
            // It must be read in any case.
            FoundFile { stat, .. } if stat.is_racy_at(self.now) => ContentSource::Unread,
            FoundFile { path, stat, .. } => {
                self.tracked.object_of(path, stat).map_or(ContentSource::Unread, ContentSource::Git)
            }
        };
        PathRecord::new(found.stat, self.now, source)
    }

    /// An entry for what is as it was. What the index of git names no more, git may remove: such a file is kept by
    /// content.
    fn unchanged_record(&self, path: &str, mut entry: PathRecord) -> PathRecord {
        let is_forgotten = |object| self.is_git_new && !self.tracked.still_names(path, object);
        if matches!(entry.source, ContentSource::Git(object) if is_forgotten(object)) {
            entry.source = ContentSource::Unread;
        }
        entry
    }
}

/// How what is there compares with the index.
#[derive(Debug, Default)]
pub(crate) struct IndexComparison {
    /// What was last seen, without the files that were met.
    pub(crate) old: WorkspaceIndex,
    /// What is there now, with all that is still known about it.
    pub(crate) index: WorkspaceIndex,
    /// These may have changed: only their content can tell. What is now ignored is not in the new index.
    pub(crate) in_doubt: Vec<PathTransition>,
    /// What was not there before.
    pub(crate) created: Vec<String>,
    /// What was not met. It is gone, or in a folder that is ignored now.
    pub(crate) not_met: Vec<MissingPath>,
    /// Ignored files that changed, or that came into sight and changed shortly before.
    pub(crate) changed_unkept: Vec<String>,
    /// Files that were not seen before, and ignored ones that are not as they were seen.
    pub(crate) newly_seen: Vec<String>,
    /// Ignored folders that were not met.
    pub(crate) folders_not_met: Vec<String>,
    /// Folders that could not be looked into, and are not among those any more.
    pub(crate) unseen_not_met: Vec<String>,
}

impl IndexComparison {
    pub(crate) fn new(old: WorkspaceIndex) -> IndexComparison {
        IndexComparison { old, ..IndexComparison::default() }
    }

    /// Compares the files that a walk finds.
    pub(crate) fn compare_all(&mut self, finds: FoundReceiver, present: &ScanContext<'_>) {
        let expected = self.old.entries.len().max(present.tracked.count());
        self.index.entries.reserve(expected);
        for mut found in finds.into_iter().flatten() {
            // What git tracks is part of the workspace, whatever the rules say.
            found.is_ignored = found.is_ignored && !present.tracked.has(&found.path);
            self.compare_found(found, present);
        }
    }

    /// All that there is was met.
    pub(crate) fn end(&mut self, walk: WalkSummary, present: &ScanContext<'_>) {
        for (path, entry) in std::mem::take(&mut self.old.entries) {
            if walk.could_not_see(&path) {
                let entry = present.unchanged_record(&path, entry);
                self.index.entries.insert(path, entry);
            } else {
                let was_hidden = !self.old.covers(&path);
                self.not_met.push(MissingPath { path, entry, was_hidden });
            }
        }
        let not_met =
            |folder: &&String| !walk.ignored_folders.contains(*folder) && !walk.could_not_see(folder);
        self.folders_not_met = self.old.ignored_folders.iter().filter(not_met).cloned().collect();
        let is_still_unseen = |folder: &String| walk.unseen.iter().any(|unseen| unseen.folder == *folder);
        let once_unseen = self.old.unseen.iter().map(|unseen| &unseen.folder);
        self.unseen_not_met = once_unseen.filter(|folder| !is_still_unseen(folder)).cloned().collect();
        self.index.ignored_folders = walk.ignored_folders;
        self.index.repositories = walk.repositories;
        self.index.unseen = walk.unseen;
        self.index.seen = Some(present.now);
    }

    /// The contents of these files can't be had from git.
    pub(crate) fn forget_git(&mut self, is_forgotten: impl Fn(&str) -> bool) {
        for (path, entry) in &mut self.index.entries {
            if matches!(entry.source, ContentSource::Git(_)) && is_forgotten(path) {
                entry.source = ContentSource::Unread;
            }
        }
    }

    /// What was last seen, so that a look that failed can be made again and finds the same.
    pub(crate) fn into_previous_index(self) -> WorkspaceIndex {
        let IndexComparison { mut index, old, in_doubt, created, not_met, .. } = self;
        created.iter().for_each(|path| index.set(path, None));
        in_doubt.into_iter().for_each(|pair| index.set(&pair.path, pair.before));
        index.entries.extend(not_met.into_iter().map(|not_met| (not_met.path, not_met.entry)));
        index.entries.extend(old.entries);
        // A walk that did not come to its end says nothing else.
        if index.seen.is_some() {
            return index;
        }
        let WorkspaceIndex { ignored_folders, repositories, unseen, seen, .. } = old;
        WorkspaceIndex { entries: index.entries, ignored_folders, repositories, unseen, seen }
    }

    fn compare_found(&mut self, found: FoundFile, present: &ScanContext<'_>) {
        let old = &mut self.old.entries;
        let before = if old.is_empty() { None } else { old.remove(&found.path) };
        match before {
            None => {
                let fresh = present.new_record(&found);
                self.add_unknown(found, fresh);
            }
            Some(before) if before.is_ignored() => {
                let fresh = present.new_record(&found);
                if before.stat.may_differ(&found.stat) {
                    self.changed_unkept.push(found.path.clone());
                }
                if before != fresh {
                    self.newly_seen.push(found.path.clone());
                }
                self.index.entries.insert(found.path, fresh);
            }
            Some(before) if found.is_ignored => {
                let fresh = present.new_record(&found);
                let after = PathRecord { source: ContentSource::Unread, ..fresh.clone() };
                self.index.entries.insert(found.path.clone(), fresh);
                self.in_doubt.push(PathTransition {
                    path: found.path,
                    before: Some(before),
                    after: Some(after),
                });
            }
            Some(before) if before.is_in_doubt(&found.stat) => {
                let after = Some(present.new_record(&found));
                self.in_doubt.push(PathTransition { path: found.path, before: Some(before), after });
            }
            Some(before) => {
                let entry = present.unchanged_record(&found.path, before);
                self.index.entries.insert(found.path, entry);
            }
        }
    }

    fn add_unknown(&mut self, found: FoundFile, fresh: PathRecord) {
        let FoundFile { path, stat, is_ignored, .. } = found;
        let old = &self.old;
        // In a folder that was ignored it may have been there all the time. Whether it changed, its time tells.
        match old.seen {
            Some(_) if !old.hides(&path) && !is_ignored => self.created.push(path.clone()),
            Some(seen) if !is_ignored && stat.is_racy_at(seen) => self.changed_unkept.push(path.clone()),
            _ => {}
        }
        if old.seen.is_some() {
            self.newly_seen.push(path.clone());
        }
        self.index.entries.insert(path, fresh);
    }
}

#[cfg(test)]
mod tests {
    use helve_protocol::Timestamp;

    use super::*;
    use crate::stat::FileMode;

    const NOW: Timestamp = Timestamp::from_millis(100_000);

    fn stat(changed: i64) -> FileStat {
        let moment = FileTime::new(changed, 0);
        FileStat {
            size: 1,
            modified: moment,
            changed: moment,
            inode: 1,
            mode: FileMode::from_bits(0o100_644),
        }
    }

    fn found(path: &str, stat: FileStat) -> FoundFile {
        FoundFile { path: path.to_owned(), stat, is_ignored: false, is_sayable: true }
    }

    fn compare_walk(old: WorkspaceIndex, found: Vec<FoundFile>, walk: WalkSummary) -> IndexComparison {
        let tracked = TrackedFiles::default();
        let present = ScanContext { now: FileTime::from(NOW), tracked: &tracked, is_git_new: false };
        let (finder, finds) = std::sync::mpsc::channel();
        finder.send(found).unwrap();
        drop(finder);
        let mut comparison = IndexComparison::new(old);
        comparison.compare_all(finds, &present);
        comparison.end(walk, &present);
        comparison
    }

    fn compare(old: WorkspaceIndex, found: Vec<FoundFile>) -> IndexComparison {
        compare_walk(old, found, WalkSummary::default())
    }

    fn seen(files: &[(&str, FileStat)]) -> WorkspaceIndex {
        let mut index =
            compare(WorkspaceIndex::default(), files.iter().map(|(path, stat)| found(path, *stat)).collect())
                .index;
        index.entries.values_mut().for_each(|entry| entry.source = ContentSource::Blobs);
        index
    }

    fn paths(pairs: &[PathTransition]) -> Vec<&str> {
        pairs.iter().map(|pair| pair.path.as_str()).collect()
    }

    #[test]
    fn only_what_has_another_stat_or_was_fresh_is_read() {
        let index = seen(&[("old", stat(50)), ("fresh", stat(99)), ("touched", stat(50))]);
        let touched = FileStat { changed: FileTime::new(60, 0), ..stat(50) };
        let comparison =
            compare(index, vec![found("old", stat(50)), found("fresh", stat(99)), found("touched", touched)]);
        assert_eq!(paths(&comparison.in_doubt), ["fresh", "touched"]);
        assert!(comparison.created.is_empty() && comparison.not_met.is_empty());
    }

    #[test]
    fn the_first_look_creates_nothing_and_later_ones_do() {
        let first = compare(WorkspaceIndex::default(), vec![found("a", stat(1))]);
        assert!(first.created.is_empty());
        let second = compare(first.index, vec![found("a", stat(1)), found("b", stat(1))]);
        assert_eq!(second.created, ["b"]);
        let third = compare(second.index, vec![found("b", stat(1))]);
        assert_eq!(third.not_met.len(), 1);
    }

    #[test]
    fn what_is_in_a_folder_that_cannot_be_read_is_not_taken_for_gone() {
        let index = seen(&[("shut/a", stat(1)), ("open/a", stat(1))]);
        let shut = UnseenFolder { folder: "shut".to_owned(), reason: String::new() };
        let walk = WalkSummary { unseen: vec![shut], ..WalkSummary::default() };
        let comparison = compare_walk(index, Vec::new(), walk);
        assert_eq!(comparison.not_met.len(), 1);
        assert!(comparison.index.entries.contains_key("shut/a"));
    }

    #[test]
    fn after_a_look_that_failed_the_next_one_finds_the_same() {
        let index = seen(&[("kept", stat(1)), ("changed", stat(1)), ("gone", stat(1))]);
        let now = || vec![found("kept", stat(1)), found("changed", stat(2)), found("new", stat(1))];
        let failed = compare(index, now());
        let again = compare(failed.into_previous_index(), now());
        assert_eq!(paths(&again.in_doubt), ["changed"]);
        assert_eq!(again.created, ["new"]);
        assert_eq!(again.not_met.len(), 1);
    }
}
