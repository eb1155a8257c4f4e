//! A look through the whole workspace: what is there, and what differs from the last look.

use std::collections::HashSet;

use helve_protocol::UnkeptReason;

use super::contents::{ContentRequest, KeepMode};
use super::{Workspace, differ};
use crate::effects::UnkeptPath;
use crate::error::WorkspaceResult;
use crate::files::RootFiles;
use crate::git::GitRepository;
use crate::git_index::TrackedFiles;
use crate::ignore_rules::IgnoreRules;
use crate::index::{ContentSource, IndexComparison, MissingPath, PathRecord, PathTransition, ScanContext};
use crate::index_notes::IndexNotes;
use crate::stat::{FileTime, PathKind};
use crate::walk::{FolderWalker, UnseenFolder};

/// What a look found.
#[derive(Debug)]
pub(super) struct WorkspaceScan {
    /// In the order of their paths.
    pub(super) differences: Vec<PathTransition>,
    /// What is ignored, and changed or went away.
    pub(super) lost: Vec<UnkeptPath>,
    pub(super) unseen: Vec<UnseenFolder>,
}

impl Workspace {
    pub(super) fn look(&mut self) -> WorkspaceResult<WorkspaceScan> {
        let now = self.now();
        let mut comparison = IndexComparison::new(std::mem::take(&mut self.index));
        let walked = self.walk(&mut comparison, now);
        if walked.is_ok() && comparison.index.ignored_folders != comparison.old.ignored_folders {
            self.notes.iter_mut().for_each(IndexNotes::open_all);
        }
        let settled = walked.and_then(|()| self.settle(&mut comparison, now));
        match settled {
            Ok((differences, read)) => {
                let lost = lost(&self.files, &comparison);
                let unseen = comparison.index.unseen.clone();
                if let Some(notes) = &mut self.notes {
                    notes.open(comparison.in_doubt.iter().map(|pair| pair.path.as_str()));
                    notes.open(comparison.not_met.iter().map(|not_met| not_met.path.as_str()));
                    notes.open(comparison.newly_seen.iter().chain(&read).map(String::as_str));
                }
                self.index = comparison.index;
                Ok(WorkspaceScan { differences, lost, unseen })
            }
            Err(error) => {
                self.index = comparison.into_previous_index();
                Err(error)
            }
        }
    }

    /// Walks, and compares what is found with what git tracks and with what was last seen.
    fn walk(&mut self, comparison: &mut IndexComparison, now: FileTime) -> WorkspaceResult<()> {
        let walker = FolderWalker { files: &self.files, max_files: self.limits.max_files };
        let nothing = TrackedFiles::default();
        let git = self.git.as_mut();
        let (mut walk, refreshed) = walker.walk(IgnoreRules::above(&self.root), |finds| {
            let (refreshed, tracked) = match git {
                Some(git) => (git.refresh(), git.tracked()),
                None => (Ok(false), &nothing),
            };
            let is_git_new = *refreshed.as_ref().unwrap_or(&true);
            comparison.compare_all(finds, &ScanContext { now, tracked, is_git_new });
            refreshed
        })?;
        let is_git_new = *refreshed.as_ref().unwrap_or(&true);
        let tracked = self.git.as_ref().map_or(&nothing, GitRepository::tracked);
        let present = ScanContext { now, tracked, is_git_new };
        walker.add_tracked(&mut walk, tracked, |finds| comparison.compare_all(finds, &present))?;
        let has_attributes = walk.has_attributes;
        comparison.end(walk, &present);
        let git = self.git.as_mut().filter(|_| has_attributes);
        let converted = git.map_or(Ok(Vec::new()), GitRepository::learn_converted);
        match refreshed.and(converted) {
            Ok(converted) if converted.is_empty() => {}
            Ok(converted) => {
                let converted: HashSet<&str> = converted.iter().map(String::as_str).collect();
                comparison.forget_git(|path| converted.contains(path));
            }
            Err(error) => {
                comparison.forget_git(|_| true);
                self.git_trouble = Some(error.to_string());
            }
        }
        Ok(())
    }

    /// Reads what must be read, so that the index is complete and the differences are certain.
    /// Gives also the paths whose content can be had from elsewhere than before.
    fn settle(
        &self,
        comparison: &mut IndexComparison,
        now: FileTime,
    ) -> WorkspaceResult<(Vec<PathTransition>, Vec<String>)> {
        let mut differences = self.settle_not_met(comparison, now);
        differences.extend(self.settle_doubts(comparison, now)?);
        drop_newly_ignored(comparison, &differences);
        let read = self.settle_sources(comparison, now)?;
        for path in &comparison.created {
            if let Some(after) = comparison.index.entries.get(path) {
                differences.push(PathTransition {
                    path: path.clone(),
                    before: None,
                    after: Some(after.clone()),
                });
            }
        }
        differences.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((differences, read))
    }

    /// What was not met is gone, or it is still there, where nobody looks: in a folder that is ignored now, or outside of
    /// the root.
    fn settle_not_met(&self, comparison: &mut IndexComparison, now: FileTime) -> Vec<PathTransition> {
        let mut gone = Vec::new();
        for MissingPath { path, entry: before, .. } in
            comparison.not_met.iter().filter(|not| !not.entry.is_ignored())
        {
            let after = match self.files.stat(path) {
                Err(_) => Some(before.clone()),
                Ok(stat) => {
                    let stat = stat.filter(|stat| stat.kind() != PathKind::Folder);
                    stat.map(|stat| PathRecord::new(stat, now, ContentSource::Unread))
                }
            };
            let pair = PathTransition { path: path.clone(), before: Some(before.clone()), after };
            match &pair.after {
                None => gone.push(pair),
                Some(after) if before.is_in_doubt(&after.stat) => comparison.in_doubt.push(pair),
                Some(_) => comparison.index.set(path, pair.before),
            }
        }
        gone
    }

    fn settle_doubts(
        &self,
        comparison: &mut IndexComparison,
        now: FileTime,
    ) -> WorkspaceResult<Vec<PathTransition>> {
        self.learn_hashes(&mut comparison.in_doubt);
        let wanted: Vec<ContentRequest> = comparison.in_doubt.iter().filter_map(wanted_for).collect();
        let read = self.read_all(&wanted, now)?;
        let mut differences = Vec::new();
        for (PathTransition { path, before, .. }, after) in comparison.in_doubt.iter().zip(read) {
            let after = after.map(|after| with_known_source(after, before.as_ref()));
            if differ(before.as_ref(), after.as_ref()) {
                differences.push(PathTransition {
                    path: path.clone(),
                    before: before.clone(),
                    after: after.clone(),
                });
            }
            if let Some(after) = after {
                // What is ignored by now is in the index as such.
                comparison.index.entries.entry(path.clone()).or_insert(after);
            }
        }
        Ok(differences)
    }

    /// Finds out where the content of each file can be had from, and keeps it if it must be.
    fn settle_sources(
        &self,
        comparison: &mut IndexComparison,
        now: FileTime,
    ) -> WorkspaceResult<Vec<String>> {
        let created: HashSet<&str> = comparison.created.iter().map(String::as_str).collect();
        let tracked = self.git.as_ref().map(GitRepository::tracked);
        let wants_names = self.notes.as_ref().is_some_and(IndexNotes::wants_names);
        let (mut wanted, mut in_git) = (Vec::new(), Vec::new());
        for (path, entry) in
            comparison.index.entries.iter_mut().filter(|(_, entry)| entry.source == ContentSource::Unread)
        {
            let object = tracked.and_then(|tracked| tracked.object_of(path, &entry.stat));
            if let Some(object) = object {
                entry.source = ContentSource::Git(object);
                in_git.extend(wants_names.then(|| path.clone()));
            }
            let must_keep = object.is_none() && (self.is_keeping || created.contains(path.as_str()));
            let must_hash = entry.hash.is_none() && entry.is_racy();
            if entry.stat.kind() == PathKind::Special {
                entry.source = ContentSource::Unavailable(UnkeptReason::Special);
            } else if must_keep || must_hash {
                let keep = if must_keep { KeepMode::InBlobs } else { KeepMode::HashOnly };
                wanted.push(ContentRequest { path: path.clone(), stat: entry.stat, keep });
            }
        }
        let read = self.read_all(&wanted, now)?;
        for (ContentRequest { path, .. }, read) in wanted.iter().zip(read) {
            match (comparison.index.entries.get_mut(path), read) {
                (Some(entry), Some(read)) => entry.adopt_read_content(read),
                _ => drop(comparison.index.entries.remove(path)),
            }
        }
        Ok(wanted.into_iter().map(|wanted| wanted.path).chain(in_git).collect())
    }
}

/// What came to be in an ignored folder is not watched any longer, unless it changed just now: then it may have to be put
/// back.
fn drop_newly_ignored(comparison: &mut IndexComparison, differences: &[PathTransition]) {
    let changed: HashSet<&str> = differences.iter().map(|pair| pair.path.as_str()).collect();
    for MissingPath { path, .. } in comparison.not_met.iter().filter(|not_met| !not_met.was_hidden) {
        if comparison.index.hides(path) && !changed.contains(path.as_str()) {
            comparison.index.entries.remove(path);
        }
    }
}

/// How to read a file that may have changed.
fn wanted_for(pair: &PathTransition) -> Option<ContentRequest> {
    let known = pair.before.as_ref().and_then(|before| before.hash);
    let after = pair.after.as_ref()?;
    let keep = match after.source {
        ContentSource::Unavailable(UnkeptReason::NotUnicode) => KeepMode::Nothing,
        _ => known.map_or(KeepMode::InBlobs, KeepMode::InBlobsUnless),
    };
    Some(ContentRequest { path: pair.path.clone(), stat: after.stat, keep })
}

/// A content that is as before can still be had from where it was.
fn with_known_source(after: PathRecord, before: Option<&PathRecord>) -> PathRecord {
    match before {
        Some(before) if after.source == ContentSource::Unread && after.hash == before.hash => {
            PathRecord { source: before.source.clone(), ..after }
        }
        _ => after,
    }
}

/// What nobody looks into, was there, and is not there any more or not the same.
fn lost<'c>(files: &RootFiles, comparison: &'c IndexComparison) -> Vec<UnkeptPath> {
    // Something else by the same name does not bring it back.
    let is_gone = |path: &str, was_folder: bool| match files.stat(path) {
        Ok(stat) => stat.is_none_or(|stat| (stat.kind() == PathKind::Folder) != was_folder),
        Err(_) => false,
    };
    let gone = |folders: &'c [String]| {
        folders.iter().filter(|path| is_gone(path, true)).map(|path| format!("{path}/"))
    };
    let ignored = comparison.not_met.iter().filter(|not| not.entry.is_ignored()).map(|not| &not.path);
    let files = ignored.filter(|path| is_gone(path, false)).cloned();
    let ignored =
        comparison.changed_unkept.iter().cloned().chain(files).chain(gone(&comparison.folders_not_met));
    let ignored = ignored.map(|path| UnkeptPath { path, why: UnkeptReason::Ignored });
    let unseen =
        gone(&comparison.unseen_not_met).map(|path| UnkeptPath { path, why: UnkeptReason::Unreadable });
    ignored.chain(unseen).collect()
}
