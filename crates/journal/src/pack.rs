//! The small payloads of a session, in one file. Putting one there costs a write; the sync comes with the log's.
//!
//! The file is a first line and then frames, one after the other: a head of fixed length, and what is stored. The head has a
//! check of its own, so the frames can be found without reading what is in them. What a kill left of the last frame is cut
//! off before the next one is written; what is damaged is passed over, up to the next head that is whole.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use helve_protocol::{BlobId, SessionId};
use zstd::bulk::{Compressor, Decompressor};

use crate::blobs::COMPRESSION_LEVEL;
use crate::error::At;
use crate::{Error, MAX_BLOB_BYTES, Result, disk};

const FIRST_LINE: &[u8] = b"helve segments 1\n";
/// What the first line of every version begins with; its number follows.
const NAME: &[u8] = b"helve segments ";
const MAX_FIRST_LINE: u64 = 64;

/// The first byte occurs in no text, so what is stored as it is seldom looks like a head.
const MARK: [u8; 4] = [0xf5, b's', b'e', b'g'];
const CHECK_BYTES: usize = 4;
const HEAD_BYTES: usize = MARK.len() + blake3::OUT_LEN + 4 + 4 + CHECK_BYTES;

/// Less than this is not worth compressing.
const TINY: usize = 128;

/// What stands before the bytes of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    hash: [u8; blake3::OUT_LEN],
    /// How many bytes follow. If as many as the content has, they are the content; else they are compressed.
    stored: u32,
    /// How many bytes the content has.
    length: u32,
}

/// What a stretch of a pack is.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Head(Head),
    /// The beginning of a head, and the end of the file.
    Torn,
    Damage,
}

impl Head {
    /// The check covers where the head stands: a payload that is a pack itself is not taken for frames of this one.
    fn check(head: &[u8], offset: u64) -> [u8; CHECK_BYTES] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&offset.to_le_bytes()).update(head);
        let mut check = [0; CHECK_BYTES];
        hasher.finalize_xof().fill(&mut check);
        check
    }

    fn write(&self, offset: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(MARK);
        out.extend(self.hash);
        out.extend(self.stored.to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out.extend(Head::check(out.get(start..).unwrap_or_default(), offset));
    }

    fn read(bytes: &[u8], offset: u64) -> Found {
        match Head::parse(bytes, offset) {
            Some(head) => Found::Head(head),
            None if bytes.len() < HEAD_BYTES && (bytes.starts_with(&MARK) || MARK.starts_with(bytes)) => {
                Found::Torn
            }
            None => Found::Damage,
        }
    }

    fn parse(bytes: &[u8], offset: u64) -> Option<Head> {
        let (checked, check) = bytes.split_at_checked(HEAD_BYTES - CHECK_BYTES)?;
        let rest = checked.strip_prefix(&MARK)?;
        if check != Head::check(checked, offset) {
            return None;
        }
        let (hash, rest) = rest.split_first_chunk()?;
        let (stored, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?);
        let head = Head { hash: *hash, stored: u32::from_le_bytes(*stored), length };
        (usize::try_from(length).ok()? <= MAX_BLOB_BYTES).then_some(head)
    }

    fn blob(&self) -> BlobId {
        BlobId::from_hash(self.hash)
    }

    fn frame_bytes(&self) -> u64 {
        HEAD_BYTES as u64 + u64::from(self.stored)
    }
}

/// The pack of one session. Only who owns the session appends to it.
pub(crate) struct Pack {
    folder: PathBuf,
    session: SessionId,
    /// Not looked at before somebody asks.
    opened: Option<Opened>,
    unsynced: Unsynced,
    /// What failed, if nobody knows what of the pack is on disk.
    doubt: Option<String>,
}

/// What is known of a pack: where each payload is, nothing of what is in it.
struct Opened {
    /// None if there is no such file yet.
    file: Option<File>,
    access: Access,
    places: HashMap<BlobId, u64>,
    /// Frames before this were there when we came.
    found: u64,
    zstd: Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Append,
    /// Another version wrote it: it is left alone.
    Foreign(u64),
}

/// What a sync has to do. Of a pack that was not made here, nobody knows what its last writer had synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unsynced {
    Nothing,
    Content,
    ContentAndName,
}

impl Pack {
    pub(crate) fn new(folder: PathBuf, session: SessionId) -> Pack {
        Pack { folder, session, opened: None, unsynced: Unsynced::ContentAndName, doubt: None }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("segments.pack")
    }

    fn opened(&mut self) -> Result<&mut Opened> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => Opened::look_at(self.open()?).at(&self.path())?,
        };
        Ok(self.opened.insert(opened))
    }

    fn open(&self) -> Result<Option<File>> {
        let path = self.path();
        disk::if_exists(disk::open_file(&path, OpenOptions::new().read(true)), &path)
    }

    pub(crate) fn contains(&mut self, blob: BlobId) -> Result<bool> {
        Ok(self.opened()?.places.contains_key(&blob))
    }

    /// Whether the payload was put here since we look after the pack. What was there before may be damaged.
    pub(crate) fn was_put_here(&mut self, blob: BlobId) -> Result<bool> {
        let opened = self.opened()?;
        Ok(opened.places.get(&blob).is_some_and(|offset| *offset >= opened.found))
    }

    /// Whether the pack is of our version, or not there yet.
    pub(crate) fn takes_more(&mut self) -> Result<bool> {
        Ok(!matches!(self.opened()?.access, Access::Foreign(_)))
    }

    pub(crate) fn load(&mut self, blob: BlobId) -> Result<Option<Vec<u8>>> {
        let path = self.path();
        let Opened { file, places, zstd, .. } = self.opened()?;
        let (Some(offset), Some(file)) = (places.get(&blob), file) else { return Ok(None) };
        match read_frame(file, *offset, zstd).at(&path)? {
            Some(content) if BlobId::from_hash(*blake3::hash(&content).as_bytes()) == blob => {
                Ok(Some(content))
            }
            _ => Err(Error::BlobDamaged(blob)),
        }
    }

    pub(crate) fn append(&mut self, hash: blake3::Hash, content: &[u8]) -> Result<()> {
        self.check_no_doubt()?;
        let appended = self.write_frame(hash, content);
        if appended.is_err() {
            // Half a frame may be there now: before the next one, what is there is looked at again.
            self.opened = None;
        }
        appended
    }

    fn write_frame(&mut self, hash: blake3::Hash, content: &[u8]) -> Result<()> {
        self.open_to_append()?;
        let path = self.path();
        let Opened { file, places, zstd, .. } = self.opened()?;
        let Some(file) = file else { return Err(Error::Gone { path }) };
        let metadata = file.metadata().at(&path)?;
        // Writing to a removed file succeeds, and is lost.
        if metadata.nlink() == 0 {
            return Err(Error::Gone { path });
        }
        let mut bytes = Vec::new();
        if metadata.len() == 0 {
            bytes.extend(FIRST_LINE);
        }
        let offset = metadata.len() + bytes.len() as u64;
        write_frame(hash, content, offset, zstd, &mut bytes).at(&path)?;
        file.write_all(&bytes).at(&path)?;
        places.insert(BlobId::from_hash(*hash.as_bytes()), offset);
        self.unsynced = self.unsynced.max(Unsynced::Content);
        Ok(())
    }

    /// Makes the pack if it is not there, and cuts off what a kill left of its last frame.
    fn open_to_append(&mut self) -> Result<()> {
        let path = self.path();
        let session = self.session;
        let opened = self.opened()?;
        match opened.access {
            Access::Append => return Ok(()),
            Access::Foreign(found) => return Err(Error::ForeignVersion { session, found }),
            Access::Read => {}
        }
        let file = disk::open_or_create(&path)?;
        let torn = file.metadata().at(&path)?.len().saturating_sub(opened.found);
        if torn > 0 {
            tracing::warn!(name: "pack.torn", %session, bytes = torn);
            file.set_len(opened.found).at(&path)?;
        }
        opened.access = Access::Append;
        if opened.file.replace(file).is_none() {
            self.unsynced = Unsynced::ContentAndName;
        }
        Ok(())
    }

    /// Makes everything in the pack survive the end of the machine. After a failure nobody knows what is on disk, and asking
    /// again may lie: nothing more is promised.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.unsynced == Unsynced::Nothing {
            return Ok(());
        }
        self.check_no_doubt()?;
        let synced = self.sync_what_is_there();
        match &synced {
            Ok(()) => self.unsynced = Unsynced::Nothing,
            Err(error) => self.doubt = Some(error.to_string()),
        }
        synced
    }

    fn sync_what_is_there(&self) -> Result<()> {
        let path = self.path();
        let known = self.opened.as_ref().and_then(|opened| opened.file.as_ref());
        if let Some(file) = known {
            file.sync_data().at(&path)?;
        } else {
            let Some(file) = self.open()? else { return Ok(()) };
            file.sync_data().at(&path)?;
        }
        match self.unsynced {
            Unsynced::ContentAndName => disk::sync_folder(&self.folder),
            Unsynced::Content | Unsynced::Nothing => Ok(()),
        }
    }

    fn check_no_doubt(&self) -> Result<()> {
        match &self.doubt {
            Some(cause) => Err(Error::InDoubt { session: self.session, cause: cause.clone() }),
            None => Ok(()),
        }
    }
}

impl Opened {
    fn look_at(file: Option<File>) -> io::Result<Opened> {
        let zstd = Zstd::default();
        let nothing = Opened { file: None, access: Access::Read, places: HashMap::new(), found: 0, zstd };
        let Some(file) = file else { return Ok(nothing) };
        match first_frame(&file)? {
            Beginning::Torn => Ok(Opened { file: Some(file), ..nothing }),
            Beginning::Foreign(version) => Ok(Opened { access: Access::Foreign(version), ..nothing }),
            Beginning::FramesAt(offset) => {
                let (places, found) = walk(&file, offset)?;
                Ok(Opened { file: Some(file), places, found, ..nothing })
            }
        }
    }
}

/// How a pack begins.
enum Beginning {
    FramesAt(u64),
    /// Not even the first line is whole.
    Torn,
    Foreign(u64),
}

fn first_frame(mut file: &File) -> io::Result<Beginning> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_FIRST_LINE).read_to_end(&mut start)?;
    if start.starts_with(FIRST_LINE) {
        return Ok(Beginning::FramesAt(FIRST_LINE.len() as u64));
    }
    if FIRST_LINE.starts_with(&start) {
        return Ok(Beginning::Torn);
    }
    // If the line is damaged, the frames can still be told by their marks.
    Ok(version_in(&start).map_or(Beginning::FramesAt(0), Beginning::Foreign))
}

fn version_in(start: &[u8]) -> Option<u64> {
    let line = start.strip_prefix(NAME)?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// Goes from head to head. Gives where each payload is, and where the last whole frame ends.
fn walk(file: &File, first: u64) -> io::Result<(HashMap<BlobId, u64>, u64)> {
    let length = file.metadata()?.len();
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(first))?;
    let mut places = HashMap::new();
    let mut offset = first;
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    while offset < length {
        bytes.clear();
        reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut bytes)?;
        match Head::read(&bytes, offset) {
            Found::Head(head) if offset + head.frame_bytes() <= length => {
                places.insert(head.blob(), offset);
                offset += head.frame_bytes();
                reader.seek_relative(i64::from(head.stored))?;
            }
            Found::Head(_) | Found::Torn => break,
            Found::Damage => offset += skip_to_mark(&mut reader, bytes.len())?,
        }
    }
    Ok((places, offset))
}

/// Goes back to the second of the bytes just read, and on to what may be a mark. Gives how far that is from the first.
fn skip_to_mark(reader: &mut BufReader<&File>, just_read: usize) -> io::Result<u64> {
    let back = i64::try_from(just_read).unwrap_or(i64::MAX) - 1;
    reader.seek_relative(-back)?;
    match reader.skip_until(MARK[0])? {
        0 => Ok(1),
        skipped => {
            reader.seek_relative(-1)?;
            Ok(skipped as u64)
        }
    }
}

fn write_frame(
    hash: blake3::Hash,
    content: &[u8],
    offset: u64,
    zstd: &mut Zstd,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let compressed = if content.len() < TINY { None } else { Some(zstd.compress(content)?) };
    let stored = compressed.as_deref().filter(|bytes| bytes.len() < content.len()).unwrap_or(content);
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
    let head = Head { hash: *hash.as_bytes(), stored: length(stored)?, length: length(content)? };
    head.write(offset, out);
    out.extend(stored);
    Ok(())
}

/// The content of the frame that begins here; `None` if it makes no sense.
fn read_frame(mut file: &File, offset: u64, zstd: &mut Zstd) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    file.seek(SeekFrom::Start(offset))?;
    file.take(HEAD_BYTES as u64).read_to_end(&mut bytes)?;
    let Some(head) = Head::parse(&bytes, offset) else { return Ok(None) };
    let mut stored = Vec::new();
    file.take(u64::from(head.stored)).read_to_end(&mut stored)?;
    if head.stored == head.length {
        return Ok(Some(stored));
    }
    let length = usize::try_from(head.length).unwrap_or(usize::MAX);
    Ok(zstd.decompress(&stored, length).ok())
}

/// What compresses and decompresses. To make one takes longer than to use it on a segment.
#[derive(Default)]
struct Zstd {
    compressor: Option<Compressor<'static>>,
    decompressor: Option<Decompressor<'static>>,
}

impl Zstd {
    fn compress(&mut self, content: &[u8]) -> io::Result<Vec<u8>> {
        let made = self.compressor.take().map_or_else(|| Compressor::new(COMPRESSION_LEVEL), Ok)?;
        self.compressor.insert(made).compress(content)
    }

    fn decompress(&mut self, stored: &[u8], length: usize) -> io::Result<Vec<u8>> {
        let made = self.decompressor.take().map_or_else(Decompressor::new, Ok)?;
        self.decompressor.insert(made).decompress(stored, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(contents: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = FIRST_LINE.to_vec();
        for content in contents {
            let offset = bytes.len() as u64;
            write_frame(blake3::hash(content), content, offset, &mut Zstd::default(), &mut bytes).unwrap();
        }
        bytes
    }

    fn look_at(bytes: &[u8]) -> Opened {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Opened::look_at(Some(file)).unwrap()
    }

    #[test]
    fn a_changed_head_is_noticed_wherever_it_was_changed() {
        let head = Head { hash: [7; 32], stored: 5, length: 9 };
        let mut bytes = Vec::new();
        head.write(100, &mut bytes);
        assert_eq!((bytes.len(), Head::read(&bytes, 100)), (HEAD_BYTES, Found::Head(head)));
        assert_eq!(Head::read(&bytes, 101), Found::Damage, "it belongs where it was written");
        for at in 0..bytes.len() {
            assert_eq!(Head::read(&bytes[..at], 100), Found::Torn, "cut at {at}");
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(Head::read(&changed, 100), Found::Damage, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn a_payload_is_compressed_only_if_that_helps() {
        let noise = blake3::Hasher::new().finalize_xof();
        let incompressible: Vec<u8> = Read::bytes(noise).take(1000).map(Result::unwrap).collect();
        for (content, stored) in [(vec![], 0), (vec![1; 100], 100), (incompressible, 1000)] {
            assert_eq!(packed(std::slice::from_ref(&content)).len() - FIRST_LINE.len(), HEAD_BYTES + stored);
        }
        assert!(packed(&[vec![1; 10_000]]).len() < 200);
    }

    #[test]
    fn a_pack_within_a_payload_is_not_taken_for_frames() {
        let inner = packed(&[vec![1; 20], vec![2; 20]]);
        let mut bytes = packed(&[inner, vec![3; 20]]);
        // The outer head is damaged, so the walk goes through the payload.
        bytes[FIRST_LINE.len() + 10] ^= 1;
        let opened = look_at(&bytes);
        let found: Vec<BlobId> = opened.places.into_keys().collect();
        assert_eq!(found, [BlobId::from_hash(*blake3::hash(&[3; 20]).as_bytes())]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_pack_or_not(bytes: Vec<u8>, is_headed: bool) {
            let bytes = if is_headed { [FIRST_LINE, &bytes].concat() } else { bytes };
            prop_assert!(look_at(&bytes).found <= bytes.len() as u64);
        }

        #[test]
        fn what_is_spoilt_harms_only_what_it_touches(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
            spoilt in any::<prop::sample::Index>(),
            noise in prop::collection::vec(any::<u8>(), 1..60),
        ) {
            let bytes = packed(&contents);
            let at = spoilt.index(bytes.len());
            let mut changed = bytes.clone();
            changed.splice(at..(at + noise.len()).min(bytes.len()), noise.iter().copied().take(bytes.len() - at));
            let opened = look_at(&changed);
            let whole = look_at(&bytes);
            for (blob, offset) in &whole.places {
                let zstd = &mut Zstd::default();
                let frame = read_frame(whole.file.as_ref().unwrap(), *offset, zstd).unwrap().unwrap();
                let is_touched = (at as u64) < offset + HEAD_BYTES as u64 + frame.len() as u64
                    && *offset < (at + noise.len()) as u64;
                if let Some(found) = opened.places.get(blob) {
                    let read = read_frame(opened.file.as_ref().unwrap(), *found, zstd).unwrap();
                    prop_assert!(is_touched || read == Some(frame));
                } else {
                    prop_assert!(is_touched || matches!(opened.access, Access::Foreign(_)), "at {at}");
                }
            }
        }
    }
}
