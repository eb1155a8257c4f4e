//! The list of sessions, kept in SQLite so that it need not be made from the logs each time.
//!
//! Nothing is ever known only here. Before each use the rows are compared with the stamps of the logs, and what a log has
//! more is read and added; so appending to a log never waits for the catalogue. A catalogue that is missing, old or damaged
//! is made anew; one that is busy is done without. Neither keeps anybody from getting the list.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use helve_protocol::{Cost, ModelName, Seq, SessionId, SessionStatus, SessionSummary, Timestamp, TokenUsage};
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, TransactionBehavior, params};

use crate::lineage::{LogReadResult, SessionLineage, read_rest, visit_all};
use crate::log_line::ChainHash;
use crate::owner::{self, OwnerStatus};
use crate::session_store::{LogStamp, SessionStore};
use crate::summary::{SummaryBuilder, TitleSource};
use crate::{JournalResult, LogReadEnd, disk};
use helve_protocol::{ActivityKind, SessionActivity};

/// Raised with every change of the tables: an old catalogue is made anew.
const CATALOGUE_VERSION: i64 = 2;

const CREATE_TABLES_SQL: &str = "
    CREATE TABLE sessions (
        session TEXT PRIMARY KEY, title TEXT NOT NULL, title_source INTEGER NOT NULL, workspace TEXT NOT NULL,
        model TEXT, created INTEGER NOT NULL, updated INTEGER NOT NULL, last INTEGER NOT NULL, turns INTEGER NOT NULL,
        input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
        reasoning INTEGER NOT NULL, cost INTEGER NOT NULL, forked_from TEXT, forked_at INTEGER, parent TEXT,
        size INTEGER NOT NULL, modified INTEGER NOT NULL, proved INTEGER NOT NULL, tip BLOB NOT NULL,
        work INTEGER NOT NULL, questions INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID";

pub(crate) struct SessionCatalogue {
    path: PathBuf,
    db: CatalogueConnection,
}

/// What there is to work with.
enum CatalogueConnection {
    Open(Connection),
    /// Nothing can be stored: every list is made from the logs.
    Unavailable,
}

/// A row: what is said of a session, and how far its log was read for it.
struct CatalogueRow {
    digest: SummaryBuilder,
    /// The log at that time.
    stamp: LogStamp,
    /// How much of it was proved.
    proved: u64,
    tip: ChainHash,
}

impl SessionCatalogue {
    pub(crate) fn open(path: &Path) -> SessionCatalogue {
        let mut catalogue = SessionCatalogue { path: path.to_owned(), db: CatalogueConnection::Unavailable };
        match connect(path) {
            Ok(db) => catalogue.db = CatalogueConnection::Open(db),
            Err(error) if is_transient(&error) => {}
            Err(_) => catalogue.replace(),
        }
        catalogue
    }

    /// Puts a new, empty catalogue in the place of what is there. Others may use the old one meanwhile; it is complete
    /// before it gets its name, so nobody finds half of it.
    pub(crate) fn replace(&mut self) {
        self.db = CatalogueConnection::Unavailable;
        match create(&self.path) {
            Ok(db) => self.db = CatalogueConnection::Open(db),
            Err(error) => tracing::warn!(name: "catalogue.not_stored", %error),
        }
    }

    /// What is wrong with the catalogue at a path.
    pub(crate) fn check(path: &Path) -> JournalResult<(), String> {
        let verdict = connect(path).and_then(|db| {
            let verdict: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            read_rows(&db)?;
            Ok(verdict)
        });
        match verdict {
            Ok(verdict) if verdict == "ok" => Ok(()),
            Ok(verdict) => Err(verdict),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The list of sessions, the last changed first, after bringing it up to what the logs say.
    pub(crate) fn list(&mut self, sessions: &SessionStore) -> JournalResult<Vec<SessionSummary>> {
        // Owners first: if a session has none, nobody writes to its log while we look at it.
        let alive = owner::sessions_with_owner(sessions.path());
        let (mut gone, stamps) = std::thread::scope(|scope| {
            let looker = scope.spawn(|| sessions.stamps());
            let rows = self.rows();
            // A looker that panicked would be a mistake of ours; looking again tells what it saw.
            (rows, looker.join().unwrap_or_else(|_| sessions.stamps()))
        });
        let mut rows = Vec::with_capacity(gone.len());
        let mut stale = Vec::new();
        for (session, stamp) in stamps? {
            match gone.remove(&session) {
                Some(row) if row.stamp == stamp => rows.push(row),
                before => stale.push((session, stamp, before)),
            }
        }
        if !stale.is_empty() || !gone.is_empty() {
            let indexed =
                stale.into_iter().map(|(session, stamp, before)| index_log(sessions, session, stamp, before));
            let indexed: Vec<CatalogueRow> = indexed.collect();
            self.save(&indexed, gone.keys());
            rows.extend(indexed);
        }
        let summary = |row: CatalogueRow| {
            let is_alive = alive.contains(&row.digest.summary.session);
            let owner = if is_alive { OwnerStatus::Alive } else { OwnerStatus::Nobody };
            to_summary(row.digest, owner, sessions.path())
        };
        let mut summaries: Vec<SessionSummary> = rows.into_iter().map(summary).collect();
        summaries.sort_by_key(|summary| std::cmp::Reverse((summary.updated, summary.session)));
        Ok(summaries)
    }

    /// What is known already. Nothing, if that can't be had: then the logs tell.
    fn rows(&mut self) -> HashMap<SessionId, CatalogueRow> {
        let CatalogueConnection::Open(db) = &self.db else { return HashMap::new() };
        match read_rows(db) {
            Ok(rows) => return rows,
            Err(error) if is_transient(&error) => tracing::warn!(name: "catalogue.busy", %error),
            Err(error) => {
                tracing::warn!(name: "catalogue.damaged", %error);
                self.replace();
            }
        }
        HashMap::new()
    }

    /// Keeps what was found for the next time. That may fail: nothing is lost by it.
    fn save<'a>(&mut self, rows: &[CatalogueRow], gone: impl Iterator<Item = &'a SessionId>) {
        let CatalogueConnection::Open(db) = &mut self.db else { return };
        if let Err(error) = save_rows(db, rows, gone) {
            tracing::warn!(name: "catalogue.not_saved", %error);
        }
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    if !path.is_file() {
        return Err(rusqlite::Error::InvalidPath(path.to_owned()));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = configured(Connection::open_with_flags(path, flags)?)?;
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == CATALOGUE_VERSION { Ok(db) } else { Err(rusqlite::Error::InvalidQuery) }
}

/// No file beside it and no waiting for the disk: what a crash spoils is made anew.
fn configured(db: Connection) -> rusqlite::Result<Connection> {
    db.busy_timeout(std::time::Duration::from_secs(2))?;
    db.pragma_update(None, "synchronous", "OFF")?;
    db.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
    Ok(db)
}

fn create(path: &Path) -> JournalResult<Connection, Box<dyn std::error::Error>> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unborn = path.with_extension(format!("db.new-{}-{count}", std::process::id()));
    if let Some(folder) = path.parent() {
        disk::create_folder(folder)?;
    }
    disk::remove_file_if_exists(&unborn)?;
    let born = create_tables(&unborn).and_then(|()| {
        if path.is_dir() {
            fs::remove_dir(path)?;
        }
        Ok(fs::rename(&unborn, path)?)
    });
    if born.is_err() {
        let _ = fs::remove_file(&unborn);
    }
    born?;
    Ok(connect(path)?)
}

fn create_tables(path: &Path) -> JournalResult<(), Box<dyn std::error::Error>> {
    // It holds titles, so it is as private as the sessions.
    disk::create_file(path)?;
    let db = configured(Connection::open(path)?)?;
    db.execute_batch(CREATE_TABLES_SQL)?;
    db.pragma_update(None, "user_version", CATALOGUE_VERSION)?;
    db.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Whether it is no fault of the catalogue's: somebody uses it, or the disk does not let us.
fn is_transient(error: &rusqlite::Error) -> bool {
    let passing = [
        ErrorCode::DatabaseBusy,
        ErrorCode::DatabaseLocked,
        ErrorCode::ReadOnly,
        ErrorCode::CannotOpen,
        ErrorCode::SystemIoFailure,
        ErrorCode::DiskFull,
        ErrorCode::PermissionDenied,
    ];
    error.sqlite_error_code().is_some_and(|code| passing.contains(&code))
}

fn read_rows(db: &Connection) -> rusqlite::Result<HashMap<SessionId, CatalogueRow>> {
    let mut query = db.prepare_cached("SELECT * FROM sessions")?;
    let rows = query.query_map([], row_from_sql)?;
    rows.map(|row| row.map(|row| (row.digest.summary.session, row))).collect()
}

fn save_rows<'a>(
    db: &mut Connection,
    rows: &[CatalogueRow],
    gone: impl Iterator<Item = &'a SessionId>,
) -> rusqlite::Result<()> {
    let changes = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for session in gone {
        changes.execute("DELETE FROM sessions WHERE session = ?", [session.to_string()])?;
    }
    // What is wrong with a log may be mended, or lie in another one: it is looked at each time.
    for row in rows.iter().filter(|row| row.digest.summary.damage.is_none()) {
        store(&changes, row)?;
    }
    changes.commit()
}

fn to_summary(digest: SummaryBuilder, owner: OwnerStatus, sessions: &Path) -> SessionSummary {
    let session = digest.summary.session;
    let seems_broken_off = owner == OwnerStatus::Nobody && digest.activity.status() != SessionStatus::Idle;
    // Somebody may have begun that work after we looked for an owner: only a second look can tell.
    let owner = if seems_broken_off { owner::owner_status(sessions, session) } else { owner };
    digest.summary_with(owner)
}

/// Reads what a log has more than its row says. Whatever is wrong with it is told in the row.
fn index_log(
    sessions: &SessionStore,
    session: SessionId,
    stamp: LogStamp,
    before: Option<CatalogueRow>,
) -> CatalogueRow {
    // Somebody may have listed what was appended after we looked at the log: only a second look can tell.
    let size_now = || fs::metadata(sessions.folder(session).log()).map_or(u64::MAX, |log| log.len());
    let is_cut = before.as_ref().is_some_and(|row| stamp.size < row.proved && size_now() < row.proved);
    // A log that was touched and did not grow is not what it was: all of it is read again.
    let has_grown = |row: &CatalogueRow| stamp.size > row.stamp.size;
    let rest = before.filter(has_grown).and_then(|row| index_rest(sessions, row));
    let read = rest.map_or_else(|| index_whole(sessions, session), Ok);
    let mut row = read.unwrap_or_else(|error| {
        let mut digest = SummaryBuilder::new(session, None);
        digest.summary.damage = Some(error.to_string());
        CatalogueRow { digest, stamp, proved: 0, tip: ChainHash::NONE }
    });
    if is_cut {
        let damage = "the log is shorter than it was: its end was cut off";
        row.digest.summary.damage.get_or_insert_with(|| damage.to_owned());
    }
    row.stamp = stamp;
    row
}

/// `None` if the log does not go on where the row stopped.
fn index_rest(sessions: &SessionStore, mut row: CatalogueRow) -> Option<CatalogueRow> {
    let summary = &row.digest.summary;
    let reader = sessions.folder(summary.session).reader().ok()?;
    let mut reader = reader.resume(row.proved, row.tip, summary.last).ok()?;
    let told = read_rest(&mut reader, &mut visit_all(|event| row.digest.apply(&event))).ok()?;
    let is_damaged = matches!(told.ending, LogReadEnd::Damaged(_));
    (!is_damaged).then(|| to_catalogue_row(row.digest, row.stamp, &told))
}

fn index_whole(sessions: &SessionStore, session: SessionId) -> JournalResult<CatalogueRow> {
    let lineage = SessionLineage::of(sessions, session)?;
    let forked_from = lineage.forked_from().map(|point| (point.session, point.seq));
    let mut digest = SummaryBuilder::new(session, forked_from);
    let told = lineage.tell(&mut visit_all(|event| digest.apply(&event)))?;
    Ok(to_catalogue_row(digest, LogStamp { size: 0, modified_ns: 0 }, &told))
}

fn to_catalogue_row(mut digest: SummaryBuilder, stamp: LogStamp, told: &LogReadResult) -> CatalogueRow {
    if let LogReadEnd::Damaged(damage) = &told.ending {
        digest.summary.damage = Some(damage.to_string());
    }
    CatalogueRow { digest, stamp, proved: told.end.length, tip: told.end.tip }
}

fn store(db: &Connection, row: &CatalogueRow) -> rusqlite::Result<()> {
    let SessionSummary {
        session, title, workspace, model, created, updated, last, turns, usage, cost, ..
    } = &row.digest.summary;
    let forked_from = row.digest.summary.forked_from;
    let mut insert = db.prepare_cached(
        "INSERT OR REPLACE INTO sessions
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        row.digest.summary.parent.map(|parent| parent.to_string()),
        signed(row.stamp.size),
        signed(row.stamp.modified_ns),
        signed(row.proved),
        row.tip.0,
        row.digest.activity.work as i64,
        signed(row.digest.activity.questions),
    ])?;
    Ok(())
}

fn row_from_sql(row: &Row<'_>) -> rusqlite::Result<CatalogueRow> {
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
        usage: TokenUsage {
            input: unsigned(row, 9)?,
            output: unsigned(row, 10)?,
            cache_read: unsigned(row, 11)?,
            cache_write: unsigned(row, 12)?,
            reasoning: unsigned(row, 13)?,
        },
        cost: Cost::from_pico_dollars(unsigned(row, 14)?),
        forked_from,
        parent: match row.get_ref(17)? {
            rusqlite::types::ValueRef::Null => None,
            _ => Some(session_in(row, 17)?),
        },
        damage: None,
        status: None,
        broken_off: false,
    };
    let title_source = match row.get(2)? {
        0 => TitleSource::None,
        1 => TitleSource::FirstMessage,
        _ => TitleSource::Given,
    };
    let work = match row.get(22)? {
        0 => ActivityKind::None,
        1 => ActivityKind::Model,
        _ => ActivityKind::Tools,
    };
    let activity = SessionActivity { work, questions: unsigned(row, 23)? };
    let digest = SummaryBuilder { summary, title_source, activity };
    let stamp = LogStamp { size: unsigned(row, 18)?, modified_ns: unsigned(row, 19)? };
    Ok(CatalogueRow { digest, stamp, proved: unsigned(row, 20)?, tip: ChainHash(row.get(21)?) })
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
