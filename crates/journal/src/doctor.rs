//! Looking a journal over, and mending what can be mended.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;

use helve_protocol::{Body, SessionId};

use crate::error::At;
use crate::files::{DYING, FileJournal, Told, UNBORN, tell};
use crate::{Damage, Ending, Error, Journal, Result, disk};

/// Something about a session that a person should know.
#[derive(Debug)]
pub enum Finding {
    /// The log can be read up to here.
    Damaged(Damage),
    /// The last line is not complete. Harmless: it was never acknowledged.
    Torn { bytes: u64 },
    /// Events of another version, which this one keeps but can't show.
    UnknownEvents { count: u64 },
    /// A payload is missing or damaged.
    Blob(Error),
    /// Nothing can be read at all.
    Unreadable(Error),
}

/// What was done to a damaged session.
#[derive(Debug)]
pub struct Repair {
    /// Where the file as it was is kept.
    pub kept_as: std::path::PathBuf,
    /// How many bytes of the log are no longer part of the session.
    pub lost_bytes: u64,
}

impl FileJournal {
    /// Reads all of a session, payloads included, and tells what is wrong with it.
    pub fn examine(&self, session: SessionId) -> Vec<Finding> {
        let mut blobs = Vec::new();
        let mut unknown = 0;
        let read = self.read(session, &mut |event| {
            unknown += u64::from(matches!(event.body, Body::Unknown(_)));
            blobs.extend(event.body.blobs());
        });
        let mut findings = Vec::new();
        match read {
            Ok(Ending::Whole) => {}
            Ok(Ending::Torn { bytes }) => findings.push(Finding::Torn { bytes }),
            Ok(Ending::Damaged(damage)) => findings.push(Finding::Damaged(damage)),
            Err(error) => findings.push(Finding::Unreadable(error)),
        }
        if unknown > 0 {
            findings.push(Finding::UnknownEvents { count: unknown });
        }
        blobs.sort_unstable();
        blobs.dedup();
        findings
            .extend(blobs.into_iter().filter_map(|blob| self.blob(session, blob).err()).map(Finding::Blob));
        findings
    }

    /// Sets a damaged log aside, whole, and goes on with the part of it that can be trusted. `None` if there is nothing to
    /// mend here: the log is fine, or its header or its parent is what is damaged.
    pub fn repair(&self, session: SessionId) -> Result<Option<Repair>> {
        let folder = self.folder(session);
        let lock = folder.lock()?;
        let mut lineage = self.lineage(session)?;
        let told = tell(&mut lineage, &mut |_| {})?;
        let Some(own) = lineage.pop() else { return Ok(None) };
        let path = folder.log();
        let Told::Ended(Ending::Damaged(damage)) = told else { return Ok(None) };
        if damage.path != path || damage.offset == 0 {
            return Ok(None);
        }
        let length = lock.metadata().at(&path)?.len();
        let mut trusted = vec![0; usize::try_from(own.reader.offset).unwrap_or(0)];
        lock.read_exact_at(&mut trusted, 0).at(&path)?;
        let mended = path.with_file_name("log.jsonl.mended");
        disk::remove_file_if_exists(&mended)?;
        disk::create_file(&mended)?.write_all(&trusted).at(&mended)?;
        fs::File::open(&mended).and_then(|file| file.sync_all()).at(&mended)?;
        let kept_as = unused_name(&path);
        fs::hard_link(&path, &kept_as).at(&kept_as)?;
        fs::rename(&mended, &path).at(&path)?;
        disk::sync_folder(&folder.path)?;
        Ok(Some(Repair { kept_as, lost_bytes: length.saturating_sub(own.reader.offset) }))
    }

    /// Removes what was left by processes that were killed while they created or deleted a session. Gives how many.
    pub fn sweep(&self) -> Result<usize> {
        let folder = self.sessions_folder();
        let mut swept = 0;
        for name in self.names()? {
            let path = folder.join(&name);
            let in_use = || fs::File::open(path.join("log.jsonl")).is_ok_and(|log| log.try_lock().is_err());
            if let Some(Ok(session)) = name.strip_prefix(DYING).map(str::parse) {
                // One with forks comes back instead.
                swept += usize::from(!in_use() && self.bury(session, &path).is_ok());
            } else if name.starts_with(UNBORN) && !in_use() {
                fs::remove_dir_all(&path).at(&path)?;
                swept += 1;
            }
        }
        Ok(swept)
    }
}

fn unused_name(log: &std::path::Path) -> std::path::PathBuf {
    let name = |n: u32| log.with_file_name(format!("log.jsonl.damaged-{n}"));
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}
