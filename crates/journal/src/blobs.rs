//! Payloads by their hash: large ones in files of their own, small ones in the session's pack.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use helve_protocol::{BlobError, BlobId, BlobStore};

use crate::error::JournalIoExt;
use crate::pack::{BlobPack, COMPRESSION_LEVEL};
use crate::session_folder::SessionFolder;
use crate::{JournalError, JournalResult, MAX_BLOB_BYTES, disk};

const UNFINISHED_BLOB_PREFIX: &str = ".unfinished-";

/// The blobs of a session. Those of its ancestors are read, never written.
pub(crate) struct FileBlobStore {
    folder: PathBuf,
    ancestors: Vec<PathBuf>,
    packs: Mutex<SessionPacks>,
    /// Those that are known to be safe on disk.
    safe: Mutex<HashSet<BlobId>>,
    /// Held while a file is written: several may be put at once, and the same one too.
    writing: Mutex<()>,
}

/// The packs of a session and of its ancestors.
struct SessionPacks {
    own: BlobPack,
    ancestors: Vec<BlobPack>,
    writer: PackWriter,
}

/// Who may append to the session's pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackWriter {
    /// We own the session.
    Us,
    SomebodyElse,
}

impl SessionPacks {
    fn all(&mut self) -> impl Iterator<Item = &mut BlobPack> {
        std::iter::once(&mut self.own).chain(&mut self.ancestors)
    }

    fn contain(&mut self, blob: BlobId) -> JournalResult<bool> {
        if self.own.contains(blob)? {
            return Ok(true);
        }
        for pack in &mut self.ancestors {
            if pack.contains(blob)? {
                // An ancestor may be at work, and syncs its pack when it has to, not when we do.
                return pack.sync().map(|()| true);
            }
        }
        Ok(false)
    }

    /// Whether a payload can be read from a pack, and will be as safe as the session's own.
    fn hold_whole(&mut self, blob: BlobId) -> bool {
        let is_whole = |pack: &mut BlobPack| matches!(pack.load(blob), Ok(Some(_)));
        is_whole(&mut self.own) || self.ancestors.iter_mut().any(|pack| is_whole(pack) && pack.sync().is_ok())
    }
}

impl FileBlobStore {
    /// The ancestors come with the youngest first.
    pub(crate) fn new(own: &SessionFolder, ancestors: &[&SessionFolder]) -> FileBlobStore {
        let pack = |folder: &SessionFolder| BlobPack::new(folder.path.clone(), folder.session);
        let packs = SessionPacks {
            own: pack(own),
            ancestors: ancestors.iter().map(|folder| pack(folder)).collect(),
            writer: PackWriter::SomebodyElse,
        };
        FileBlobStore {
            folder: own.blobs(),
            ancestors: ancestors.iter().map(|folder| folder.blobs()).collect(),
            packs: Mutex::new(packs),
            safe: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    pub(crate) fn name(blob: BlobId) -> String {
        format!("{blob}.zst")
    }

    fn packs(&self) -> MutexGuard<'_, SessionPacks> {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn safe(&self) -> MutexGuard<'_, HashSet<BlobId>> {
        self.safe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called while the session is ours, and no more when it is not.
    pub(crate) fn own_pack(&self) {
        self.packs().writer = PackWriter::Us;
    }

    pub(crate) fn disown_pack(&self) {
        self.packs().writer = PackWriter::SomebodyElse;
    }

    /// Makes what was put soon survive the end of the machine.
    pub(crate) fn sync(&self) -> JournalResult<()> {
        self.packs().own.sync()
    }

    /// Whether an event may name the blob.
    pub(crate) fn may_be_named(&self, blob: BlobId) -> JournalResult<bool> {
        if self.safe().contains(&blob) {
            return Ok(true);
        }
        if self.packs().contain(blob)? {
            return Ok(true);
        }
        // Whatever has its final name was complete before it got it.
        let found = self.folders().any(|folder| folder.join(FileBlobStore::name(blob)).exists());
        if found {
            self.safe().insert(blob);
        }
        Ok(found)
    }

    pub(crate) fn store(&self, content: &[u8]) -> JournalResult<BlobId> {
        let blob = id_of(hash(content)?);
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.safe().contains(&blob);
        // One that was left by an earlier process may be damaged: then it is written anew.
        if !known && !self.is_whole_in_file(blob) && !self.is_safe_in_pack(blob) {
            self.write(blob, content)?;
        }
        self.safe().insert(blob);
        Ok(blob)
    }

    fn is_whole_in_file(&self, blob: BlobId) -> bool {
        matches!(self.load_file(blob), Ok(Some(_)))
    }

    fn is_safe_in_pack(&self, blob: BlobId) -> bool {
        let mut packs = self.packs();
        packs.hold_whole(blob) && packs.own.sync().is_ok()
    }

    pub(crate) fn store_unsynced(&self, content: &[u8]) -> JournalResult<BlobId> {
        let hash = hash(content)?;
        let blob = id_of(hash);
        let mut packs = self.packs();
        // A pack that is not ours is left alone. A file of its own is dearer, and always right.
        if packs.writer == PackWriter::SomebodyElse || !packs.own.accepts_appends()? {
            drop(packs);
            return self.store(content);
        }
        let known = packs.own.was_put_here(blob)? || self.safe().contains(&blob);
        if !known && !self.is_whole_in_file(blob) && !packs.hold_whole(blob) {
            packs.own.append(hash, content)?;
        }
        Ok(blob)
    }

    fn write(&self, blob: BlobId, content: &[u8]) -> JournalResult<()> {
        if !self.folder.exists() {
            self.create_folder()?;
        }
        let unfinished = self.folder.join(format!("{UNFINISHED_BLOB_PREFIX}{blob}"));
        disk::remove_file_if_exists(&unfinished)?;
        let written = self.write_to(&unfinished, content);
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        let path = self.folder.join(FileBlobStore::name(blob));
        fs::rename(&unfinished, &path).at(&path)?;
        disk::sync_folder(&self.folder)
    }

    /// A session without blobs has no folder for them; one that was removed with its session is not made again.
    fn create_folder(&self) -> JournalResult<()> {
        let Some(session) = self.folder.parent() else { return Ok(()) };
        fs::metadata(session).at(session)?;
        disk::create_folder(&self.folder)?;
        disk::sync_folder(session)
    }

    fn write_to(&self, path: &std::path::Path, content: &[u8]) -> JournalResult<()> {
        let compressed = zstd::bulk::compress(content, COMPRESSION_LEVEL).at(path)?;
        let mut file = disk::create_file(path)?;
        file.write_all(&compressed).and_then(|()| file.sync_data()).at(path)
    }

    pub(crate) fn load(&self, blob: BlobId) -> JournalResult<Vec<u8>> {
        // What is damaged in one place may be whole in another.
        let file = self.load_file(blob);
        if let Ok(Some(content)) = file {
            return Ok(content);
        }
        let mut failed = file.err();
        for pack in self.packs().all() {
            match pack.load(blob) {
                Ok(Some(content)) => return Ok(content),
                Ok(None) => {}
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        Err(failed.unwrap_or(JournalError::BlobMissing(blob)))
    }

    fn load_file(&self, blob: BlobId) -> JournalResult<Option<Vec<u8>>> {
        let name = FileBlobStore::name(blob);
        for folder in self.folders() {
            let path = folder.join(&name);
            if let Some(file) =
                disk::if_exists(disk::open_file(&path, fs::OpenOptions::new().read(true)), &path)?
            {
                return decompress(file, blob).map(Some);
            }
        }
        Ok(None)
    }

    fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.folder).chain(&self.ancestors)
    }

    /// Removes what a killed process left half written, and makes sure of what it left whole.
    pub(crate) fn tidy(&self) -> JournalResult<()> {
        let Some(entries) = disk::if_exists(fs::read_dir(&self.folder), &self.folder)? else { return Ok(()) };
        for entry in entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED_BLOB_PREFIX))
        {
            let _ = fs::remove_file(entry.path());
        }
        disk::sync_folder(&self.folder)
    }
}

fn hash(content: &[u8]) -> JournalResult<blake3::Hash> {
    if content.len() > MAX_BLOB_BYTES {
        return Err(JournalError::TooLarge {
            what: "a payload",
            bytes: content.len(),
            limit: MAX_BLOB_BYTES,
        });
    }
    Ok(blake3::hash(content))
}

fn id_of(hash: blake3::Hash) -> BlobId {
    BlobId::from_hash(*hash.as_bytes())
}

fn decompress(file: File, blob: BlobId) -> JournalResult<Vec<u8>> {
    let mut content = Vec::new();
    // A damaged file may claim any size, so one byte more than the limit is enough to know.
    let limit = MAX_BLOB_BYTES as u64 + 1;
    let decoder = zstd::stream::read::Decoder::new(file);
    let read = decoder.and_then(|decoder| decoder.take(limit).read_to_end(&mut content));
    let intact = read.is_ok() && id_of(blake3::hash(&content)) == blob;
    if intact { Ok(content) } else { Err(JournalError::BlobDamaged(blob)) }
}

impl BlobStore for FileBlobStore {
    fn put(&self, content: &[u8]) -> JournalResult<BlobId, BlobError> {
        self.store(content).map_err(|error| BlobError(Box::new(error)))
    }

    fn put_unsynced(&self, content: &[u8]) -> JournalResult<BlobId, BlobError> {
        self.store_unsynced(content).map_err(|error| BlobError(Box::new(error)))
    }

    fn sync(&self) -> JournalResult<(), BlobError> {
        FileBlobStore::sync(self).map_err(|error| BlobError(Box::new(error)))
    }

    fn get(&self, blob: BlobId) -> JournalResult<Vec<u8>, BlobError> {
        self.load(blob).map_err(|error| BlobError(Box::new(error)))
    }
}
