//! A look through the whole workspace: what is there, and what differs from the last look.

use std::collections::HashSet;

use crate::effects::{NotKept, WhyNotKept};
use crate::error::Result;
use crate::files::Files;
use crate::git::Git;
use crate::index::{Comparison, Entry, NotMet, Pair, Present, Source};
use crate::keep::{Keep, Wanted};
use crate::notes::Notes;
use crate::rules::Rules;
use crate::stat::{Kind, Moment};
use crate::tracked::Tracked;
use crate::walk::{Unseen, Walker};
use crate::workspace::{Workspace, differ};

/// What a look found.
#[derive(Debug)]
pub(crate) struct Seen {
    /// In the order of their paths.
    pub(crate) differences: Vec<Pair>,
    /// What is ignored, and changed or went away.
    pub(crate) lost: Vec<NotKept>,
    pub(crate) unseen: Vec<Unseen>,
}

impl Workspace {
    pub(crate) fn look(&mut self) -> Result<Seen> {
        let now = self.now();
        let mut comparison = Comparison::new(std::mem::take(&mut self.index));
        let walked = self.walk(&mut comparison, now);
        if walked.is_ok() && comparison.index.ignored_folders != comparison.old.ignored_folders {
            self.notes.iter_mut().for_each(Notes::open_all);
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
                Ok(Seen { differences, lost, unseen })
            }
            Err(error) => {
                self.index = comparison.into_last();
                Err(error)
            }
        }
    }

    /// Walks, and compares what is found with what git tracks and with what was last seen.
    fn walk(&mut self, comparison: &mut Comparison, now: Moment) -> Result<()> {
        let walker = Walker { files: &self.files, max_files: self.limits.max_files };
        let nothing = Tracked::default();
        let git = self.git.as_mut();
        let (mut walk, refreshed) = walker.walk(Rules::above(&self.root), |finds| {
            let (refreshed, tracked) = match git {
                Some(git) => (git.refresh(), git.tracked()),
                None => (Ok(false), &nothing),
            };
            let is_git_new = *refreshed.as_ref().unwrap_or(&true);
            comparison.meet_all(finds, &Present { now, tracked, is_git_new });
            refreshed
        })?;
        let is_git_new = *refreshed.as_ref().unwrap_or(&true);
        let tracked = self.git.as_ref().map_or(&nothing, Git::tracked);
        let present = Present { now, tracked, is_git_new };
        walker.add_tracked(&mut walk, tracked, |finds| comparison.meet_all(finds, &present))?;
        let has_attributes = walk.has_attributes;
        comparison.end(walk, &present);
        let git = self.git.as_mut().filter(|_| has_attributes);
        let converted = git.map_or(Ok(Vec::new()), Git::learn_converted);
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
    fn settle(&self, comparison: &mut Comparison, now: Moment) -> Result<(Vec<Pair>, Vec<String>)> {
        let mut differences = self.settle_not_met(comparison, now);
        differences.extend(self.settle_doubts(comparison, now)?);
        let_go(comparison, &differences);
        let read = self.settle_sources(comparison, now)?;
        for path in &comparison.created {
            if let Some(after) = comparison.index.entries.get(path) {
                differences.push(Pair { path: path.clone(), before: None, after: Some(after.clone()) });
            }
        }
        differences.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((differences, read))
    }

    /// What was not met is gone, or it is still there, where nobody looks: in a folder that is ignored now, or outside of
    /// the root.
    fn settle_not_met(&self, comparison: &mut Comparison, now: Moment) -> Vec<Pair> {
        let mut gone = Vec::new();
        for NotMet { path, entry: before, .. } in
            comparison.not_met.iter().filter(|not| !not.entry.is_ignored())
        {
            let after = match self.files.stat(path) {
                Err(_) => Some(before.clone()),
                Ok(stat) => {
                    let stat = stat.filter(|stat| stat.kind() != Kind::Folder);
                    stat.map(|stat| Entry::new(stat, now, Source::Unread))
                }
            };
            let pair = Pair { path: path.clone(), before: Some(before.clone()), after };
            match &pair.after {
                None => gone.push(pair),
                Some(after) if before.is_in_doubt(&after.stat) => comparison.in_doubt.push(pair),
                Some(_) => comparison.index.set(path, pair.before),
            }
        }
        gone
    }

    fn settle_doubts(&self, comparison: &mut Comparison, now: Moment) -> Result<Vec<Pair>> {
        self.learn_hashes(&mut comparison.in_doubt);
        let wanted: Vec<Wanted> = comparison.in_doubt.iter().filter_map(wanted_for).collect();
        let read = self.read_all(&wanted, now)?;
        let mut differences = Vec::new();
        for (Pair { path, before, .. }, after) in comparison.in_doubt.iter().zip(read) {
            let after = after.map(|after| with_known_source(after, before.as_ref()));
            if differ(before.as_ref(), after.as_ref()) {
                differences.push(Pair { path: path.clone(), before: before.clone(), after: after.clone() });
            }
            if let Some(after) = after {
                // What is ignored by now is in the index as such.
                comparison.index.entries.entry(path.clone()).or_insert(after);
            }
        }
        Ok(differences)
    }

    /// Finds out where the content of each file can be had from, and keeps it if it must be.
    fn settle_sources(&self, comparison: &mut Comparison, now: Moment) -> Result<Vec<String>> {
        let created: HashSet<&str> = comparison.created.iter().map(String::as_str).collect();
        let tracked = self.git.as_ref().map(Git::tracked);
        let wants_names = self.notes.as_ref().is_some_and(Notes::wants_names);
        let (mut wanted, mut in_git) = (Vec::new(), Vec::new());
        for (path, entry) in
            comparison.index.entries.iter_mut().filter(|(_, entry)| entry.source == Source::Unread)
        {
            let object = tracked.and_then(|tracked| tracked.object_of(path, &entry.stat));
            if let Some(object) = object {
                entry.source = Source::Git(object);
                in_git.extend(wants_names.then(|| path.clone()));
            }
            let must_keep = object.is_none() && (self.is_keeping || created.contains(path.as_str()));
            let must_hash = entry.hash.is_none() && entry.is_racy();
            if entry.stat.kind() == Kind::Special {
                entry.source = Source::Nowhere(WhyNotKept::Special);
            } else if must_keep || must_hash {
                let keep = if must_keep { Keep::InBlobs } else { Keep::Hash };
                wanted.push(Wanted { path: path.clone(), stat: entry.stat, keep });
            }
        }
        let read = self.read_all(&wanted, now)?;
        for (Wanted { path, .. }, read) in wanted.iter().zip(read) {
            match (comparison.index.entries.get_mut(path), read) {
                (Some(entry), Some(read)) => entry.take_over(read),
                _ => drop(comparison.index.entries.remove(path)),
            }
        }
        Ok(wanted.into_iter().map(|wanted| wanted.path).chain(in_git).collect())
    }
}

/// What came to be in an ignored folder is not watched any longer, unless it changed just now: then it may have to be put
/// back.
fn let_go(comparison: &mut Comparison, differences: &[Pair]) {
    let changed: HashSet<&str> = differences.iter().map(|pair| pair.path.as_str()).collect();
    for NotMet { path, .. } in comparison.not_met.iter().filter(|not_met| !not_met.was_hidden) {
        if comparison.index.hides(path) && !changed.contains(path.as_str()) {
            comparison.index.entries.remove(path);
        }
    }
}

/// How to read a file that may have changed.
fn wanted_for(pair: &Pair) -> Option<Wanted> {
    let known = pair.before.as_ref().and_then(|before| before.hash);
    let after = pair.after.as_ref()?;
    let keep = match after.source {
        Source::Nowhere(WhyNotKept::NotUnicode) => Keep::Nothing,
        _ => known.map_or(Keep::InBlobs, Keep::Unless),
    };
    Some(Wanted { path: pair.path.clone(), stat: after.stat, keep })
}

/// A content that is as before can still be had from where it was.
fn with_known_source(after: Entry, before: Option<&Entry>) -> Entry {
    match before {
        Some(before) if after.source == Source::Unread && after.hash == before.hash => {
            Entry { source: before.source.clone(), ..after }
        }
        _ => after,
    }
}

/// What nobody looks into, was there, and is not there any more or not the same.
fn lost<'c>(files: &Files, comparison: &'c Comparison) -> Vec<NotKept> {
    // Something else by the same name does not bring it back.
    let is_gone = |path: &str, was_folder: bool| match files.stat(path) {
        Ok(stat) => stat.is_none_or(|stat| (stat.kind() == Kind::Folder) != was_folder),
        Err(_) => false,
    };
    let gone = |folders: &'c [String]| {
        folders.iter().filter(|path| is_gone(path, true)).map(|path| format!("{path}/"))
    };
    let ignored = comparison.not_met.iter().filter(|not| not.entry.is_ignored()).map(|not| &not.path);
    let files = ignored.filter(|path| is_gone(path, false)).cloned();
    let ignored =
        comparison.changed_unkept.iter().cloned().chain(files).chain(gone(&comparison.folders_not_met));
    let ignored = ignored.map(|path| NotKept { path, why: WhyNotKept::Ignored });
    let unseen = gone(&comparison.unseen_not_met).map(|path| NotKept { path, why: WhyNotKept::Unreadable });
    ignored.chain(unseen).collect()
}
