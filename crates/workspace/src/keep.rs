//! Reads contents, keeps them in the blobs, and gets them back from git.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use helve_protocol::BlobId;

use crate::diff::{Patience, count_lines};
use crate::effects::{Effect, Image, NotKept, WhyNotKept};
use crate::error::{At, Result};
use crate::files::{Content, is_absence, read_in, stat_in};
use crate::git::Object;
use crate::index::{Entry, Pair, Source};
use crate::stat::{Kind, Moment, Stat};
use crate::tracked::ObjectId;
use crate::walk::threads;
use crate::workspace::{Workspace, is_content_known};

/// Fewer files are not worth another thread.
const FILES_PER_THREAD: usize = 16;

/// What to do with a content that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    InBlobs,
    /// Only its hash.
    Hash,
    /// In the blobs, unless it is this one.
    Unless(BlobId),
    /// Nothing: it can't be reached by its name.
    Nothing,
}

/// A content that is to be read.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) path: String,
    pub(crate) stat: Stat,
    pub(crate) keep: Keep,
}

/// What reading gave, with the place of its path in the list.
type Numbered = (usize, Option<Entry>);

impl Workspace {
    /// Reads many contents, several at a time. The entries come in the same order; none if the file is gone.
    pub(crate) fn read_all(&self, wanted: &[Wanted], now: Moment) -> Result<Vec<Option<Entry>>> {
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
        let count = threads().min(wanted.len() / FILES_PER_THREAD + 1);
        let parts: Vec<Result<Vec<Numbered>>> = thread::scope(|scope| {
            let workers: Vec<_> = (1..count).map(|_| scope.spawn(work)).collect();
            let own = work();
            workers.into_iter().filter_map(|worker| worker.join().ok()).chain([own]).collect()
        });
        let mut all = parts.into_iter().collect::<Result<Vec<_>>>()?.concat();
        all.sort_by_key(|(at, _)| *at);
        Ok(all.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Keeps some of the files whose content is nowhere else yet, and says whether there may be more.
    pub fn keep_some(&mut self, most: usize) -> Result<bool> {
        let is_open = |entry: &Entry| entry.source == Source::Unread && entry.stat.kind() != Kind::Special;
        let open = self.index.entries.iter().filter(|(_, entry)| is_open(entry)).take(most);
        let wanted: Vec<Wanted> = open
            .map(|(path, entry)| Wanted { path: path.clone(), stat: entry.stat, keep: Keep::InBlobs })
            .collect();
        let read = self.read_all(&wanted, self.now())?;
        for (Wanted { path, .. }, read) in wanted.iter().zip(read) {
            match (self.index.entries.get_mut(path), read) {
                // What changed since it was seen, the next look finds; then it is kept.
                (Some(entry), Some(read)) if entry.stat == read.stat => entry.take_over(read),
                (Some(entry), _) => entry.source = Source::Nowhere(WhyNotKept::NotReadBefore),
                (None, _) => {}
            }
        }
        if let Some(notes) = &mut self.notes {
            notes.open(wanted.iter().map(|wanted| wanted.path.as_str()));
        }
        Ok(wanted.len() == most)
    }

    fn read(&self, wanted: &Wanted, now: Moment) -> Result<Option<Entry>> {
        let Wanted { path, stat, keep } = wanted;
        if *keep == Keep::Nothing {
            return Ok(Some(Entry::new(*stat, now, Source::Nowhere(WhyNotKept::NotUnicode))));
        }
        let content = self.files.read(path, stat, self.limits.max_file_bytes);
        self.entry_of(content, *stat, *keep, now)
    }

    /// What becomes of a content that was read, or could not be.
    fn entry_of(&self, content: Content, stat: Stat, keep: Keep, now: Moment) -> Result<Option<Entry>> {
        let nowhere = |why| Ok(Some(Entry::new(stat, now, Source::Nowhere(why))));
        match content {
            Content::Gone => Ok(None),
            Content::TooLarge => nowhere(WhyNotKept::TooLarge),
            Content::Special => nowhere(WhyNotKept::Special),
            Content::Unreadable => nowhere(WhyNotKept::Unreadable),
            Content::Read(stat, bytes) => {
                let hash = BlobId::from_hash(*blake3::hash(&bytes).as_bytes());
                let source = match keep {
                    Keep::Hash | Keep::Nothing => Source::Unread,
                    Keep::Unless(known) if known == hash => Source::Unread,
                    Keep::InBlobs | Keep::Unless(_) => self.put(&bytes)?,
                };
                Ok(Some(Entry { hash: Some(hash), ..Entry::new(stat, now, source) }))
            }
        }
    }

    fn put(&self, bytes: &[u8]) -> Result<Source> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let before = self.kept_bytes.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > self.limits.max_kept_bytes {
            let is_wanted = self.limits.max_kept_bytes > 0;
            let why = if is_wanted { WhyNotKept::TooMuch } else { WhyNotKept::NotWanted };
            return Ok(Source::Nowhere(why));
        }
        // Safe on disk when the call that may change it is noted to begin.
        self.blobs.put_soon(bytes)?;
        Ok(Source::Blobs)
    }

    /// What a path holds now, with its content kept; none if there is neither a file nor a link.
    pub(crate) fn see(&self, path: &str) -> Result<Option<Entry>> {
        match self.files.open_parent(path) {
            Ok((folder, _)) => self.see_in(&folder, path),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error).at(self.files.absolute(path)),
        }
    }

    /// The same for a path whose folder is open.
    pub(crate) fn see_in(&self, folder: &OwnedFd, path: &str) -> Result<Option<Entry>> {
        let Some(Entry { stat, seen: now, .. }) = self.glance_in(folder, path)? else { return Ok(None) };
        match self.index.entries.get(path) {
            Some(known) if known.source == Source::Blobs && !known.is_in_doubt(&stat) => {
                Ok(Some(known.clone()))
            }
            _ => {
                let content = read_in(folder, name_in_folder(path), &stat, self.limits.max_file_bytes);
                self.entry_of(content, stat, Keep::InBlobs, now)
            }
        }
    }

    /// What a path holds now whose folder is open, without its content.
    pub(crate) fn glance_in(&self, folder: &OwnedFd, path: &str) -> Result<Option<Entry>> {
        let stat = match stat_in(folder, name_in_folder(path)) {
            Err(error) if is_absence(&error) => None,
            stat => Some(stat.at(self.files.absolute(path))?),
        };
        let stat = stat.filter(|stat| stat.kind() != Kind::Folder);
        Ok(stat.map(|stat| Entry::new(stat, self.now(), Source::Unread)))
    }

    /// The hashes of the contents that are in git, without keeping them.
    pub(crate) fn learn_hashes(&self, pairs: &mut [Pair]) {
        let mut asked: Vec<(ObjectId, &mut Option<BlobId>)> = Vec::new();
        for pair in pairs {
            if let Some(Entry { hash: hash @ None, source: Source::Git(object), .. }) = pair.before.as_mut() {
                asked.push((*object, hash));
            }
        }
        let (objects, hashes): (Vec<ObjectId>, Vec<&mut Option<BlobId>>) = asked.into_iter().unzip();
        let mut hashes = hashes.into_iter();
        self.load_from_git(&objects, |object| {
            if let (Some(hash), Object::Bytes(bytes)) = (hashes.next(), object) {
                *hash = Some(BlobId::from_hash(*blake3::hash(&bytes).as_bytes()));
            }
        });
    }

    /// If git fails, what was not told is missing.
    fn load_from_git(&self, objects: &[ObjectId], tell: impl FnMut(Object)) {
        if let Some(git) = &self.git {
            let _ = git.load(objects, self.limits.max_file_bytes, tell);
        }
    }

    /// What the differences mean: with both contents kept, as far as they can be, and what is lost. If that can't be said
    /// now, the next look finds the same differences.
    pub(crate) fn effects_of(&mut self, pairs: Vec<Pair>) -> Result<(Vec<Effect>, Vec<NotKept>)> {
        let effects = self.try_effects_of(&pairs);
        if effects.is_err() {
            pairs.into_iter().for_each(|Pair { path, before, .. }| self.set(&path, before));
        }
        effects
    }

    fn try_effects_of(&self, pairs: &[Pair]) -> Result<(Vec<Effect>, Vec<NotKept>)> {
        let from_git = self.copy_from_git(pairs)?;
        let mut effects = Vec::with_capacity(pairs.len());
        let mut lost = Vec::new();
        let mut patience = Patience::default();
        for Pair { path, before, after } in pairs {
            let image = |entry: &Option<Entry>| entry.as_ref().map(|entry| image_of(entry, &from_git));
            let (was, is) = (image(before), image(after));
            if let (Some(before), Some(Image { content: None, .. })) = (before, was) {
                let why = before.why_not_kept().unwrap_or(WhyNotKept::GoneFromGit);
                lost.push(NotKept { path: path.clone(), why });
            }
            let (added_lines, removed_lines) = self.count_changed_lines(was, is, &mut patience)?;
            effects.push(Effect { path: path.clone(), before: was, after: is, added_lines, removed_lines });
        }
        Ok((effects, lost))
    }

    /// Copies the contents that are in git to the blobs. Those that git does not have any more are missing, also those
    /// that are not as long as the file was: something stood between the file and its object.
    fn copy_from_git(&self, pairs: &[Pair]) -> Result<HashMap<ObjectId, BlobId>> {
        let entries = pairs.iter().flat_map(|pair| [&pair.before, &pair.after]).flatten();
        let in_git = entries.filter_map(|entry| match &entry.source {
            Source::Git(object) => Some((*object, entry.stat.size)),
            _ => None,
        });
        let sizes: HashMap<ObjectId, u64> = in_git.collect();
        let (objects, sizes): (Vec<ObjectId>, Vec<u64>) = sizes.into_iter().unzip();
        let mut asked = objects.iter().zip(sizes);
        let mut copied = HashMap::new();
        let mut failure = None;
        self.load_from_git(&objects, |loaded| {
            let (Some((object, size)), Object::Bytes(bytes)) = (asked.next(), loaded) else { return };
            if u64::try_from(bytes.len()) == Ok(size) && failure.is_none() {
                match self.blobs.put_soon(&bytes) {
                    Ok(blob) => drop(copied.insert(*object, blob)),
                    Err(error) => failure = Some(error),
                }
            }
        });
        failure.map_or(Ok(copied), |error| Err(error.into()))
    }

    fn count_changed_lines(
        &self,
        before: Option<Image>,
        after: Option<Image>,
        patience: &mut Patience,
    ) -> Result<(u64, u64)> {
        if !is_content_known(before) || !is_content_known(after) {
            return Ok((0, 0));
        }
        let content = |image: Option<Image>| match image.and_then(|image| image.content) {
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

fn image_of(entry: &Entry, from_git: &HashMap<ObjectId, BlobId>) -> Image {
    let content = match &entry.source {
        Source::Blobs => entry.hash,
        Source::Git(object) => from_git.get(object).copied(),
        Source::Unread | Source::Nowhere(_) => None,
    };
    Image { mode: entry.stat.mode, content }
}
