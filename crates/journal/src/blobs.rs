//! Large payloads, each in a file named by its hash.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use helve_protocol::{BlobError, BlobId, Blobs};

use crate::error::At;
use crate::{Error, MAX_BLOB_BYTES, Result, disk};

/// Fast, and small enough: a payload is written while somebody waits.
const COMPRESSION_LEVEL: i32 = 3;
const UNFINISHED: &str = ".unfinished-";

/// The blobs of a session. Those of its ancestors are read, never written.
#[derive(Debug)]
pub(crate) struct FileBlobs {
    folder: PathBuf,
    ancestors: Vec<PathBuf>,
    /// Those that are known to be safe on disk.
    safe: Mutex<HashSet<BlobId>>,
    /// Held while a blob is written: several may be put at once, and the same one too.
    writing: Mutex<()>,
}

impl FileBlobs {
    pub(crate) fn new(folder: PathBuf, ancestors: Vec<PathBuf>) -> FileBlobs {
        FileBlobs { folder, ancestors, safe: Mutex::default(), writing: Mutex::default() }
    }

    pub(crate) fn name(blob: BlobId) -> String {
        format!("{blob}.zst")
    }

    /// Whether an event may name the blob.
    pub(crate) fn is_safe(&self, blob: BlobId) -> bool {
        let mut safe = self.safe.lock().unwrap_or_else(PoisonError::into_inner);
        if safe.contains(&blob) {
            return true;
        }
        // Whatever has its final name was complete before it got it.
        let found = self.folders().any(|folder| folder.join(FileBlobs::name(blob)).exists());
        if found {
            safe.insert(blob);
        }
        found
    }

    pub(crate) fn store(&self, content: &[u8]) -> Result<BlobId> {
        if content.len() > MAX_BLOB_BYTES {
            return Err(Error::TooLarge { what: "a payload", bytes: content.len(), limit: MAX_BLOB_BYTES });
        }
        let blob = BlobId::from_hash(*blake3::hash(content).as_bytes());
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.safe.lock().unwrap_or_else(PoisonError::into_inner).contains(&blob);
        // One that was left by an earlier process may be damaged: then it is written anew.
        if !known && self.load(blob).is_err() {
            self.write(blob, content)?;
        }
        self.safe.lock().unwrap_or_else(PoisonError::into_inner).insert(blob);
        Ok(blob)
    }

    fn write(&self, blob: BlobId, content: &[u8]) -> Result<()> {
        if !self.folder.exists() {
            self.create_folder()?;
        }
        let unfinished = self.folder.join(format!("{UNFINISHED}{blob}"));
        disk::remove_file_if_exists(&unfinished)?;
        let written = self.write_to(&unfinished, content);
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        let path = self.folder.join(FileBlobs::name(blob));
        fs::rename(&unfinished, &path).at(&path)?;
        disk::sync_folder(&self.folder)
    }

    /// A session without blobs has no folder for them; one that was removed with its session is not made again.
    fn create_folder(&self) -> Result<()> {
        let Some(session) = self.folder.parent() else { return Ok(()) };
        fs::metadata(session).at(session)?;
        disk::create_folder(&self.folder)?;
        disk::sync_folder(session)
    }

    fn write_to(&self, path: &std::path::Path, content: &[u8]) -> Result<()> {
        let compressed = zstd::bulk::compress(content, COMPRESSION_LEVEL).at(path)?;
        let mut file = disk::create_file(path)?;
        file.write_all(&compressed).and_then(|()| file.sync_data()).at(path)
    }

    pub(crate) fn load(&self, blob: BlobId) -> Result<Vec<u8>> {
        let name = FileBlobs::name(blob);
        for folder in self.folders() {
            let path = folder.join(&name);
            if let Some(file) =
                disk::if_exists(disk::open_file(&path, fs::OpenOptions::new().read(true)), &path)?
            {
                return decompress(file, blob);
            }
        }
        Err(Error::BlobMissing(blob))
    }

    fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.folder).chain(&self.ancestors)
    }

    /// Removes what a killed process left half written, and makes sure of what it left whole.
    pub(crate) fn tidy(&self) -> Result<()> {
        let Some(entries) = disk::if_exists(fs::read_dir(&self.folder), &self.folder)? else { return Ok(()) };
        for entry in
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED))
        {
            let _ = fs::remove_file(entry.path());
        }
        disk::sync_folder(&self.folder)
    }
}

fn decompress(file: File, blob: BlobId) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    // A damaged file may claim any size, so one byte more than the limit is enough to know.
    let limit = MAX_BLOB_BYTES as u64 + 1;
    let decoder = zstd::stream::read::Decoder::new(file);
    let read = decoder.and_then(|decoder| decoder.take(limit).read_to_end(&mut content));
    let intact = read.is_ok() && BlobId::from_hash(*blake3::hash(&content).as_bytes()) == blob;
    if intact { Ok(content) } else { Err(Error::BlobDamaged(blob)) }
}

impl Blobs for FileBlobs {
    fn put(&self, content: &[u8]) -> Result<BlobId, BlobError> {
        self.store(content).map_err(|error| BlobError(Box::new(error)))
    }

    fn get(&self, blob: BlobId) -> Result<Vec<u8>, BlobError> {
        self.load(blob).map_err(|error| BlobError(Box::new(error)))
    }
}
