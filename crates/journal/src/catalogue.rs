//! The list of sessions, kept in SQLite so that it need not be made from the logs each time.
//!
//! Nothing is ever known only here. Before each use the rows are compared with the sizes of the logs, and what a log has
//! more is read and added; so appending to a log never waits for the catalogue, and a catalogue that is missing, old or
//! damaged is simply made anew.

use std::collections::HashMap;
use std::path::Path;

use helve_protocol::{Cost, ModelName, Seq, SessionId, SessionSummary, Timestamp, Usage};
use rusqlite::{Connection, OpenFlags, Row, params};

use crate::digest::{Digest, TitleSource};
use crate::disk;
use crate::files::{FileJournal, Told, tell};
use crate::line::Tip;
use crate::{Ending, Error, Result};

/// Raised with every change of the tables: an old catalogue is made anew.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE sessions (
        session TEXT PRIMARY KEY, title TEXT NOT NULL, title_source INTEGER NOT NULL, workspace TEXT NOT NULL,
        model TEXT, created INTEGER NOT NULL, updated INTEGER NOT NULL, last INTEGER NOT NULL, turns INTEGER NOT NULL,
        input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
        reasoning INTEGER NOT NULL, cost INTEGER NOT NULL, forked_from TEXT, forked_at INTEGER, damage TEXT,
        size INTEGER NOT NULL, proved INTEGER NOT NULL, tip BLOB NOT NULL
    ) STRICT, WITHOUT ROWID";

pub(crate) struct Catalogue {
    db: Connection,
}

/// A row: what is said of a session, and how far its log was read for it.
struct Indexed {
    digest: Digest,
    /// The size of the log at that time.
    size: u64,
    /// How much of it was proved.
    proved: u64,
    tip: Tip,
}

impl Catalogue {
    pub(crate) fn open(path: &Path) -> Result<Catalogue> {
        match Catalogue::open_as_is(path) {
            Ok(catalogue) => Ok(catalogue),
            Err(_) => Catalogue::anew(path),
        }
    }

    /// Removes what is there and begins with nothing. Where nothing can be written, the catalogue lives in memory.
    pub(crate) fn anew(path: &Path) -> Result<Catalogue> {
        let removed = Catalogue::remove(path);
        let on_disk = removed.and_then(|()| Catalogue::create(Connection::open(path)?));
        match on_disk {
            Ok(catalogue) => Ok(catalogue),
            Err(error) => {
                tracing::warn!(name: "catalogue.in_memory", %error);
                Catalogue::create(Connection::open_in_memory()?)
            }
        }
    }

    /// Whether the catalogue is there, whole and of this version.
    pub(crate) fn check(path: &Path) -> Result<()> {
        let catalogue = Catalogue::open_as_is(path)?;
        let verdict: String = catalogue.db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if verdict == "ok" { Ok(()) } else { Err(useless(&verdict)) }
    }

    fn open_as_is(path: &Path) -> Result<Catalogue> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)?;
        let catalogue = Catalogue::configured(db)?;
        let version: i64 = catalogue.db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version == VERSION { Ok(catalogue) } else { Err(useless("it is of another version")) }
    }

    fn create(db: Connection) -> Result<Catalogue> {
        let catalogue = Catalogue::configured(db)?;
        catalogue.db.execute_batch(TABLES)?;
        catalogue.db.pragma_update(None, "user_version", VERSION)?;
        Ok(catalogue)
    }

    fn configured(db: Connection) -> Result<Catalogue> {
        db.busy_timeout(std::time::Duration::from_secs(5))?;
        Ok(Catalogue { db })
    }

    fn remove(path: &Path) -> Result<()> {
        disk::remove_file_if_exists(path)?;
        disk::remove_file_if_exists(&path.with_extension("db-journal"))?;
        match path.parent() {
            Some(folder) => disk::create_folder(folder),
            None => Ok(()),
        }
    }

    /// Brings the rows up to what the logs say.
    pub(crate) fn refresh(&mut self, journal: &FileJournal) -> Result<()> {
        let mut known = self.sizes()?;
        let mut stale = Vec::new();
        for (session, size) in journal.sizes()? {
            if known.remove(&session) != Some(size) {
                stale.push((session, size));
            }
        }
        if stale.is_empty() && known.is_empty() {
            return Ok(());
        }
        let changes = self.db.transaction()?;
        for session in known.keys() {
            changes.execute("DELETE FROM sessions WHERE session = ?", [session.to_string()])?;
        }
        for (session, size) in stale {
            let before = find(&changes, session)?;
            store(&changes, &index(journal, session, size, before))?;
        }
        changes.commit()?;
        Ok(())
    }

    fn sizes(&self) -> Result<HashMap<SessionId, u64>> {
        let mut query = self.db.prepare_cached("SELECT session, size FROM sessions")?;
        let rows = query.query_map([], |row| Ok((session_in(row, 0)?, unsigned(row, 1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(crate) fn summaries(&self) -> Result<Vec<SessionSummary>> {
        let mut query = self.db.prepare_cached("SELECT * FROM sessions")?;
        let rows = query.query_map([], |row| Ok(indexed(row)?.digest.summary))?;
        let mut summaries: Vec<SessionSummary> = rows.collect::<rusqlite::Result<_>>()?;
        summaries.sort_by_key(|summary| std::cmp::Reverse((summary.updated, summary.session)));
        Ok(summaries)
    }
}

/// Reads what a log has more than its row says. Whatever is wrong with it is told in the row.
fn index(journal: &FileJournal, session: SessionId, size: u64, before: Option<Indexed>) -> Indexed {
    let is_cut = before.as_ref().is_some_and(|row| size < row.proved);
    let goes_on = before.filter(|row| row.digest.summary.damage.is_none() && size >= row.proved);
    let read = match goes_on {
        Some(row) => index_rest(journal, row),
        None => index_whole(journal, session),
    };
    let mut row = read.unwrap_or_else(|error| {
        let mut digest = Digest::new(session, None);
        digest.summary.damage = Some(error.to_string());
        Indexed { digest, size, proved: 0, tip: Tip::NONE }
    });
    if is_cut {
        let damage = "the log is shorter than it was: its end was cut off";
        row.digest.summary.damage.get_or_insert_with(|| damage.to_owned());
    }
    row.size = size;
    row
}

fn index_rest(journal: &FileJournal, mut row: Indexed) -> Result<Indexed> {
    let summary = &row.digest.summary;
    let reader = journal.folder(summary.session).reader()?.resume(row.proved, row.tip, summary.last)?;
    let mut own = crate::files::Generation::own(reader, journal.folder(summary.session));
    let told = own.tell(&mut |event| row.digest.apply(&event))?;
    Ok(finished(row.digest, &own.reader, told))
}

fn index_whole(journal: &FileJournal, session: SessionId) -> Result<Indexed> {
    let mut lineage = journal.lineage(session)?;
    let forked_from = lineage.last().and_then(|own| own.reader.header.forked_from);
    let mut digest = Digest::new(session, forked_from.map(|point| (point.session, point.seq)));
    let told = tell(&mut lineage, &mut |event| digest.apply(&event))?;
    let own = lineage.pop().ok_or(Error::NotFound(session))?;
    Ok(finished(digest, &own.reader, told))
}

fn finished(mut digest: Digest, reader: &crate::reader::LogReader, told: Told) -> Indexed {
    if let Ending::Damaged(damage) = told.ending() {
        digest.summary.damage = Some(damage.to_string());
    }
    Indexed { digest, size: 0, proved: reader.offset, tip: reader.tip }
}

fn find(db: &Connection, session: SessionId) -> Result<Option<Indexed>> {
    let mut query = db.prepare_cached("SELECT * FROM sessions WHERE session = ?")?;
    let mut rows = query.query_map([session.to_string()], indexed)?;
    Ok(rows.next().transpose()?)
}

fn store(db: &Connection, row: &Indexed) -> Result<()> {
    let SessionSummary {
        session, title, workspace, model, created, updated, last, turns, usage, cost, ..
    } = &row.digest.summary;
    let forked_from = row.digest.summary.forked_from;
    let mut insert = db.prepare_cached(
        "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    insert.execute(params![
        session.to_string(),
        title,
        row.digest.title_source as i64,
        workspace,
        model.as_ref().map(ModelName::as_str),
        signed(created.millis()),
        signed(updated.millis()),
        signed(last.0),
        signed(*turns),
        signed(usage.input),
        signed(usage.output),
        signed(usage.cache_read),
        signed(usage.cache_write),
        signed(usage.reasoning),
        signed(cost.pico_dollars()),
        forked_from.map(|(session, _)| session.to_string()),
        forked_from.map(|(_, seq)| signed(seq.0)),
        row.digest.summary.damage,
        signed(row.size),
        signed(row.proved),
        row.tip.0,
    ])?;
    Ok(())
}

fn indexed(row: &Row<'_>) -> rusqlite::Result<Indexed> {
    let forked_from = match row.get::<_, Option<i64>>(16)? {
        Some(_) => Some((session_in(row, 15)?, Seq(unsigned(row, 16)?))),
        None => None,
    };
    let summary = SessionSummary {
        session: session_in(row, 0)?,
        title: row.get(1)?,
        workspace: row.get(3)?,
        model: row.get::<_, Option<String>>(4)?.map(ModelName::new),
        created: Timestamp::from_millis(unsigned(row, 5)?),
        updated: Timestamp::from_millis(unsigned(row, 6)?),
        last: Seq(unsigned(row, 7)?),
        turns: unsigned(row, 8)?,
        usage: Usage {
            input: unsigned(row, 9)?,
            output: unsigned(row, 10)?,
            cache_read: unsigned(row, 11)?,
            cache_write: unsigned(row, 12)?,
            reasoning: unsigned(row, 13)?,
        },
        cost: Cost::from_pico_dollars(unsigned(row, 14)?),
        forked_from,
        damage: row.get(17)?,
    };
    let title_source = match row.get(2)? {
        0 => TitleSource::None,
        1 => TitleSource::FirstMessage,
        _ => TitleSource::Given,
    };
    let digest = Digest { summary, title_source };
    Ok(Indexed { digest, size: unsigned(row, 18)?, proved: unsigned(row, 19)?, tip: Tip(row.get(20)?) })
}

fn session_in(row: &Row<'_>, column: usize) -> rusqlite::Result<SessionId> {
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|_| rusqlite::Error::InvalidColumnName(text.to_owned()))
}

/// SQLite's numbers are signed; ours are sizes, times and sums that never reach the sign.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn useless(why: &str) -> Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Error::Catalogue(rusqlite::Error::SqliteFailure(code, Some(why.to_owned())))
}
