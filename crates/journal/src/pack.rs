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

use crate::error::JournalIoExt;
use crate::{JournalError, JournalResult, MAX_BLOB_BYTES, disk};

const PACK_FIRST_LINE: &[u8] = b"helve segments 1\n";
/// What the first line of every version begins with; its number follows.
const PACK_FIRST_LINE_PREFIX: &[u8] = b"helve segments ";
const MAX_PACK_FIRST_LINE_BYTES: u64 = 64;

/// The first byte occurs in no text, so what is stored as it is seldom looks like a head.
const FRAME_MARK: [u8; 4] = [0xf5, b's', b'e', b'g'];
const HEAD_CHECK_BYTES: usize = 4;
const FRAME_HEAD_BYTES: usize = FRAME_MARK.len() + blake3::OUT_LEN + 4 + 4 + HEAD_CHECK_BYTES;

/// Fast, and small enough: a payload is written while somebody waits.
pub(crate) const COMPRESSION_LEVEL: i32 = 3;
/// Less than this is not worth compressing.
const MIN_COMPRESSED_BYTES: usize = 128;

/// What stands before the bytes of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackFrameHead {
    hash: [u8; blake3::OUT_LEN],
    /// How many bytes follow. If as many as the content has, they are the content; else they are compressed.
    stored: u32,
    /// How many bytes the content has.
    length: u32,
}

/// What a stretch of a pack is.
#[derive(Debug, PartialEq, Eq)]
enum PackScanResult {
    Head(PackFrameHead),
    /// The beginning of a head, and the end of the file.
    Torn,
    Damage,
}

impl PackFrameHead {
    /// The check covers where the head stands: a payload that is a pack itself is not taken for frames of this one.
    fn check(head: &[u8], offset: u64) -> [u8; HEAD_CHECK_BYTES] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&offset.to_le_bytes()).update(head);
        let mut check = [0; HEAD_CHECK_BYTES];
        hasher.finalize_xof().fill(&mut check);
        check
    }

    fn write(&self, offset: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(FRAME_MARK);
        out.extend(self.hash);
        out.extend(self.stored.to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out.extend(PackFrameHead::check(out.get(start..).unwrap_or_default(), offset));
    }

    fn read(bytes: &[u8], offset: u64) -> PackScanResult {
        match PackFrameHead::parse(bytes, offset) {
            Some(head) => PackScanResult::Head(head),
            None if bytes.len() < FRAME_HEAD_BYTES
                && (bytes.starts_with(&FRAME_MARK) || FRAME_MARK.starts_with(bytes)) =>
            {
                PackScanResult::Torn
            }
            None => PackScanResult::Damage,
        }
    }

    fn parse(bytes: &[u8], offset: u64) -> Option<PackFrameHead> {
        let (checked, check) = bytes.split_at_checked(FRAME_HEAD_BYTES - HEAD_CHECK_BYTES)?;
        let rest = checked.strip_prefix(&FRAME_MARK)?;
        if check != PackFrameHead::check(checked, offset) {
            return None;
        }
        let (hash, rest) = rest.split_first_chunk()?;
        let (stored, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?);
        let head = PackFrameHead { hash: *hash, stored: u32::from_le_bytes(*stored), length };
        (usize::try_from(length).ok()? <= MAX_BLOB_BYTES).then_some(head)
    }

    fn blob(&self) -> BlobId {
        BlobId::from_hash(self.hash)
    }

    fn frame_bytes(&self) -> u64 {
        FRAME_HEAD_BYTES as u64 + u64::from(self.stored)
    }
}

/// The pack of one session. Only who owns the session appends to it.
pub(crate) struct BlobPack {
    folder: PathBuf,
    session: SessionId,
    /// Not looked at before somebody asks.
    opened: Option<BlobPackIndex>,
    unsynced: PendingSync,
    /// What failed, if nobody knows what of the pack is on disk.
    doubt: Option<String>,
}

/// What is known of a pack: where each payload is, nothing of what is in it.
struct BlobPackIndex {
    /// None if there is no such file yet.
    file: Option<File>,
    access: PackAccess,
    places: HashMap<BlobId, u64>,
    /// Frames before this were there when we came.
    found: u64,
    zstd: ZstdContext,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackAccess {
    Read,
    Append,
    /// Another version wrote it: it is left alone.
    Foreign(u64),
}

/// What a sync has to do. Of a pack that was not made here, nobody knows what its last writer had synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PendingSync {
    Nothing,
    Content,
    ContentAndName,
}

impl BlobPack {
    pub(crate) fn new(folder: PathBuf, session: SessionId) -> BlobPack {
        BlobPack { folder, session, opened: None, unsynced: PendingSync::ContentAndName, doubt: None }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("segments.pack")
    }

    fn opened(&mut self) -> JournalResult<&mut BlobPackIndex> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => BlobPackIndex::look_at(self.open()?).at(&self.path())?,
        };
        Ok(self.opened.insert(opened))
    }

    fn open(&self) -> JournalResult<Option<File>> {
        let path = self.path();
        disk::if_exists(disk::open_file(&path, OpenOptions::new().read(true)), &path)
    }

    pub(crate) fn contains(&mut self, blob: BlobId) -> JournalResult<bool> {
        Ok(self.opened()?.places.contains_key(&blob))
    }

    /// Whether the payload was put here since we look after the pack. What was there before may be damaged.
    pub(crate) fn was_put_here(&mut self, blob: BlobId) -> JournalResult<bool> {
        let opened = self.opened()?;
        Ok(opened.places.get(&blob).is_some_and(|offset| *offset >= opened.found))
    }

    /// Whether the pack is of our version, or not there yet.
    pub(crate) fn accepts_appends(&mut self) -> JournalResult<bool> {
        Ok(!matches!(self.opened()?.access, PackAccess::Foreign(_)))
    }

    pub(crate) fn load(&mut self, blob: BlobId) -> JournalResult<Option<Vec<u8>>> {
        let path = self.path();
        let BlobPackIndex { file, places, zstd, .. } = self.opened()?;
        let (Some(offset), Some(file)) = (places.get(&blob), file) else { return Ok(None) };
        match read_frame(file, *offset, zstd).at(&path)? {
            Some(content) if BlobId::from_hash(*blake3::hash(&content).as_bytes()) == blob => {
                Ok(Some(content))
            }
            _ => Err(JournalError::BlobDamaged(blob)),
        }
    }

    pub(crate) fn append(&mut self, hash: blake3::Hash, content: &[u8]) -> JournalResult<()> {
        self.check_no_doubt()?;
        let appended = self.write_frame(hash, content);
        if appended.is_err() {
            // Half a frame may be there now: before the next one, what is there is looked at again.
            self.opened = None;
        }
        appended
    }

    fn write_frame(&mut self, hash: blake3::Hash, content: &[u8]) -> JournalResult<()> {
        self.open_to_append()?;
        let path = self.path();
        let BlobPackIndex { file, places, zstd, .. } = self.opened()?;
        let Some(file) = file else { return Err(JournalError::Gone { path }) };
        let metadata = file.metadata().at(&path)?;
        // Writing to a removed file succeeds, and is lost.
        if metadata.nlink() == 0 {
            return Err(JournalError::Gone { path });
        }
        let mut bytes = Vec::new();
        if metadata.len() == 0 {
            bytes.extend(PACK_FIRST_LINE);
        }
        let offset = metadata.len() + bytes.len() as u64;
        write_frame(hash, content, offset, zstd, &mut bytes).at(&path)?;
        file.write_all(&bytes).at(&path)?;
        places.insert(BlobId::from_hash(*hash.as_bytes()), offset);
        self.unsynced = self.unsynced.max(PendingSync::Content);
        Ok(())
    }

    /// Makes the pack if it is not there, and cuts off what a kill left of its last frame.
    fn open_to_append(&mut self) -> JournalResult<()> {
        let path = self.path();
        let session = self.session;
        let opened = self.opened()?;
        match opened.access {
            PackAccess::Append => return Ok(()),
            PackAccess::Foreign(found) => return Err(JournalError::ForeignVersion { session, found }),
            PackAccess::Read => {}
        }
        let file = disk::open_or_create(&path)?;
        let torn = file.metadata().at(&path)?.len().saturating_sub(opened.found);
        if torn > 0 {
            tracing::warn!(name: "pack.torn", %session, bytes = torn);
            file.set_len(opened.found).at(&path)?;
        }
        opened.access = PackAccess::Append;
        if opened.file.replace(file).is_none() {
            self.unsynced = PendingSync::ContentAndName;
        }
        Ok(())
    }

    /// Makes everything in the pack survive the end of the machine. After a failure nobody knows what is on disk, and asking
    /// again may lie: nothing more is promised.
    pub(crate) fn sync(&mut self) -> JournalResult<()> {
        if self.unsynced == PendingSync::Nothing {
            return Ok(());
        }
        self.check_no_doubt()?;
        let synced = self.sync_what_is_there();
        match &synced {
            Ok(()) => self.unsynced = PendingSync::Nothing,
            Err(error) => self.doubt = Some(error.to_string()),
        }
        synced
    }

    fn sync_what_is_there(&self) -> JournalResult<()> {
        let path = self.path();
        let known = self.opened.as_ref().and_then(|opened| opened.file.as_ref());
        if let Some(file) = known {
            file.sync_data().at(&path)?;
        } else {
            let Some(file) = self.open()? else { return Ok(()) };
            file.sync_data().at(&path)?;
        }
        match self.unsynced {
            PendingSync::ContentAndName => disk::sync_folder(&self.folder),
            PendingSync::Content | PendingSync::Nothing => Ok(()),
        }
    }

    fn check_no_doubt(&self) -> JournalResult<()> {
        match &self.doubt {
            Some(cause) => Err(JournalError::InDoubt { session: self.session, cause: cause.clone() }),
            None => Ok(()),
        }
    }
}

impl BlobPackIndex {
    fn look_at(file: Option<File>) -> io::Result<BlobPackIndex> {
        let zstd = ZstdContext::default();
        let nothing =
            BlobPackIndex { file: None, access: PackAccess::Read, places: HashMap::new(), found: 0, zstd };
        let Some(file) = file else { return Ok(nothing) };
        match first_frame(&file)? {
            PackStart::Torn => Ok(BlobPackIndex { file: Some(file), ..nothing }),
            PackStart::Foreign(version) => {
                Ok(BlobPackIndex { access: PackAccess::Foreign(version), ..nothing })
            }
            PackStart::FramesAt(offset) => {
                let (places, found) = scan_frames(&file, offset)?;
                Ok(BlobPackIndex { file: Some(file), places, found, ..nothing })
            }
        }
    }
}

/// How a pack begins.
enum PackStart {
    FramesAt(u64),
    /// Not even the first line is whole.
    Torn,
    Foreign(u64),
}

fn first_frame(mut file: &File) -> io::Result<PackStart> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_PACK_FIRST_LINE_BYTES).read_to_end(&mut start)?;
    if start.starts_with(PACK_FIRST_LINE) {
        return Ok(PackStart::FramesAt(PACK_FIRST_LINE.len() as u64));
    }
    if PACK_FIRST_LINE.starts_with(&start) {
        return Ok(PackStart::Torn);
    }
    // If the line is damaged, the frames can still be told by their marks.
    Ok(version_in(&start).map_or(PackStart::FramesAt(0), PackStart::Foreign))
}

fn version_in(start: &[u8]) -> Option<u64> {
    let line = start.strip_prefix(PACK_FIRST_LINE_PREFIX)?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// Goes from head to head. Gives where each payload is, and where the last whole frame ends.
fn scan_frames(file: &File, first: u64) -> io::Result<(HashMap<BlobId, u64>, u64)> {
    let length = file.metadata()?.len();
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(first))?;
    let mut places = HashMap::new();
    let mut offset = first;
    let mut bytes = Vec::with_capacity(FRAME_HEAD_BYTES);
    while offset < length {
        bytes.clear();
        reader.by_ref().take(FRAME_HEAD_BYTES as u64).read_to_end(&mut bytes)?;
        match PackFrameHead::read(&bytes, offset) {
            PackScanResult::Head(head) if offset + head.frame_bytes() <= length => {
                places.insert(head.blob(), offset);
                offset += head.frame_bytes();
                reader.seek_relative(i64::from(head.stored))?;
            }
            PackScanResult::Head(_) | PackScanResult::Torn => break,
            PackScanResult::Damage => offset += skip_to_mark(&mut reader, bytes.len())?,
        }
    }
    Ok((places, offset))
}

/// Goes back to the second of the bytes just read, and on to what may be a mark. Gives how far that is from the first.
fn skip_to_mark(reader: &mut BufReader<&File>, just_read: usize) -> io::Result<u64> {
    let back = i64::try_from(just_read).unwrap_or(i64::MAX) - 1;
    reader.seek_relative(-back)?;
    match reader.skip_until(FRAME_MARK[0])? {
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
    zstd: &mut ZstdContext,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let compressed = if content.len() < MIN_COMPRESSED_BYTES { None } else { Some(zstd.compress(content)?) };
    let stored = compressed.as_deref().filter(|bytes| bytes.len() < content.len()).unwrap_or(content);
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
    let head = PackFrameHead { hash: *hash.as_bytes(), stored: length(stored)?, length: length(content)? };
    head.write(offset, out);
    out.extend(stored);
    Ok(())
}

/// The content of the frame that begins here; `None` if it makes no sense.
fn read_frame(mut file: &File, offset: u64, zstd: &mut ZstdContext) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(FRAME_HEAD_BYTES);
    file.seek(SeekFrom::Start(offset))?;
    file.take(FRAME_HEAD_BYTES as u64).read_to_end(&mut bytes)?;
    let Some(head) = PackFrameHead::parse(&bytes, offset) else { return Ok(None) };
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
struct ZstdContext {
    compressor: Option<Compressor<'static>>,
    decompressor: Option<Decompressor<'static>>,
}

impl ZstdContext {
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
        let mut bytes = PACK_FIRST_LINE.to_vec();
        for content in contents {
            let offset = bytes.len() as u64;
            write_frame(blake3::hash(content), content, offset, &mut ZstdContext::default(), &mut bytes)
                .unwrap();
        }
        bytes
    }

    fn look_at(bytes: &[u8]) -> BlobPackIndex {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        BlobPackIndex::look_at(Some(file)).unwrap()
    }

    #[test]
    fn a_changed_head_is_noticed_wherever_it_was_changed() {
        let head = PackFrameHead { hash: [7; 32], stored: 5, length: 9 };
        let mut bytes = Vec::new();
        head.write(100, &mut bytes);
        assert_eq!(
            (bytes.len(), PackFrameHead::read(&bytes, 100)),
            (FRAME_HEAD_BYTES, PackScanResult::Head(head))
        );
        assert_eq!(
            PackFrameHead::read(&bytes, 101),
            PackScanResult::Damage,
            "it belongs where it was written"
        );
        for at in 0..bytes.len() {
            assert_eq!(PackFrameHead::read(&bytes[..at], 100), PackScanResult::Torn, "cut at {at}");
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(
                    PackFrameHead::read(&changed, 100),
                    PackScanResult::Damage,
                    "bit {bit} of byte {at}"
                );
            }
        }
    }

    #[test]
    fn a_payload_is_compressed_only_if_that_helps() {
        let noise = blake3::Hasher::new().finalize_xof();
        let incompressible: Vec<u8> = Read::bytes(noise).take(1000).map(JournalResult::unwrap).collect();
        for (content, stored) in [(vec![], 0), (vec![1; 100], 100), (incompressible, 1000)] {
            assert_eq!(
                packed(std::slice::from_ref(&content)).len() - PACK_FIRST_LINE.len(),
                FRAME_HEAD_BYTES + stored
            );
        }
        assert!(packed(&[vec![1; 10_000]]).len() < 200);
    }

    #[test]
    fn a_pack_within_a_payload_is_not_taken_for_frames() {
        let inner = packed(&[vec![1; 20], vec![2; 20]]);
        let mut bytes = packed(&[inner, vec![3; 20]]);
        // The outer head is damaged, so the walk goes through the payload.
        bytes[PACK_FIRST_LINE.len() + 10] ^= 1;
        let opened = look_at(&bytes);
        let found: Vec<BlobId> = opened.places.into_keys().collect();
        assert_eq!(found, [BlobId::from_hash(*blake3::hash(&[3; 20]).as_bytes())]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_pack_or_not(bytes: Vec<u8>, is_headed: bool) {
            let bytes = if is_headed { [PACK_FIRST_LINE, &bytes].concat() } else { bytes };
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
                let zstd = &mut ZstdContext::default();
                let frame = read_frame(whole.file.as_ref().unwrap(), *offset, zstd).unwrap().unwrap();
                let is_touched = (at as u64) < offset + FRAME_HEAD_BYTES as u64 + frame.len() as u64
                    && *offset < (at + noise.len()) as u64;
                if let Some(found) = opened.places.get(blob) {
                    let read = read_frame(opened.file.as_ref().unwrap(), *found, zstd).unwrap();
                    prop_assert!(is_touched || read == Some(frame));
                } else {
                    prop_assert!(is_touched || matches!(opened.access, PackAccess::Foreign(_)), "at {at}");
                }
            }
        }
    }
}
