//! The two logs (R-BOOT-6). The public one may be attached to a bug report: it holds names that stand in the source
//! code, numbers, and the few texts listed below. Whatever else is said goes to the restricted one only.

use std::fmt::{self, Write as _};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use helve_config::LogLevel;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use helve_protocol::Clock;

use crate::setup::SystemClock;

pub(crate) const PUBLIC_LOG_FILE: &str = "public.log";
pub(crate) const RESTRICTED_LOG_FILE: &str = "restricted.log";

/// The fields whose texts say nothing about anybody's work.
const PUBLIC_TEXT_FIELDS: [&str; 9] = [
    "command",
    "version",
    "session",
    "kind",
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.agent.name",
    "gen_ai.conversation.id",
    "error.type",
];
/// A log that has grown beyond this makes way for a new one; the last old one is kept.
const MAX_LOG_FILE_BYTES: u64 = 4 << 20;

/// From here on whatever is said with `tracing` is written down. Nothing is opened before something is said.
pub(crate) fn start(folder: &Path, level: LogLevel) {
    let log = |name: &str, content: LogContent| LogLayer {
        file: LogFile::new(folder.join(name)),
        content,
        level: most(level),
    };
    let logs = tracing_subscriber::registry()
        .with(log(PUBLIC_LOG_FILE, LogContent::Public))
        .with(log(RESTRICTED_LOG_FILE, LogContent::All));
    // Only a test could have set another one before.
    let _ = logs.try_init();
}

fn most(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum LogContent {
    Public,
    All,
}

impl LogContent {
    fn of(self, kept: &mut SpanRecord) -> &mut String {
        match self {
            LogContent::Public => &mut kept.public,
            LogContent::All => &mut kept.all,
        }
    }
}

struct LogLayer {
    file: LogFile,
    content: LogContent,
    level: Level,
}

/// What is kept of a span until it ends: when it began, and a line for each log.
struct SpanRecord {
    began: Instant,
    public: String,
    all: String,
}

impl LogLayer {
    fn takes(&self, about: &Metadata<'_>) -> bool {
        *about.level() <= self.level && about.target().starts_with("helve")
    }

    fn line(&self, about: &Metadata<'_>) -> String {
        format!("{} {:5} {} {}", time(), about.level(), about.target(), about.name())
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn enabled(&self, about: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.takes(about)
    }

    fn on_new_span(&self, fields: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut kept = span.extensions_mut();
        if kept.get_mut::<SpanRecord>().is_none() {
            kept.insert(SpanRecord { began: Instant::now(), public: String::new(), all: String::new() });
        }
        if let Some(kept) = kept.get_mut::<SpanRecord>() {
            let line = self.content.of(kept);
            fields.record(&mut LogFieldWriter { line, content: self.content });
        }
    }

    fn on_record(&self, id: &Id, fields: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(kept) = span.extensions_mut().get_mut::<SpanRecord>()
        {
            let line = self.content.of(kept);
            fields.record(&mut LogFieldWriter { line, content: self.content });
        }
    }

    /// A span is one line, at its end, with how long it took.
    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id)
            && let Some(kept) = span.extensions_mut().get_mut::<SpanRecord>()
        {
            let millis = kept.began.elapsed().as_millis();
            let line = format!("{} ms={millis}{}\n", self.line(span.metadata()), self.content.of(kept));
            self.file.write(&line);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = self.line(event.metadata());
        event.record(&mut LogFieldWriter { line: &mut line, content: self.content });
        line.push('\n');
        self.file.write(&line);
    }
}

fn time() -> String {
    let millis = i64::try_from(SystemClock.now().millis()).unwrap_or(0);
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| "?".to_owned(), |time| format!("{time:.3}"))
}

/// Writes the fields of an event to a line.
struct LogFieldWriter<'a> {
    line: &'a mut String,
    content: LogContent,
}

impl LogFieldWriter<'_> {
    fn show(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let _ = write!(self.line, " {}={value}", field.name());
    }

    fn show_text(&mut self, field: &Field, text: &str) {
        let is_public = PUBLIC_TEXT_FIELDS.contains(&field.name());
        match self.content {
            LogContent::All => self.show(field, format_args!("{text:?}")),
            LogContent::Public if is_public => self.show(field, format_args!("{text:?}")),
            LogContent::Public => self.show(field, format_args!("[{} bytes]", text.len())),
        }
    }
}

impl Visit for LogFieldWriter<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.show_text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.show_text(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.show(field, format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.show(field, format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.show(field, format_args!("{value}"));
    }
}

/// Opened at the first line. Where it can't be written, nothing is: a log is no reason to fail.
struct LogFile {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl LogFile {
    fn new(path: PathBuf) -> LogFile {
        LogFile { path, file: Mutex::new(None) }
    }

    fn write(&self, line: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = open(&self.path);
        }
        if let Some(file) = file.as_mut() {
            // One call a line, so that the lines of several processes do not mix.
            let _ = file.write_all(line.as_bytes());
        }
    }
}

fn open(path: &Path) -> Option<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(path.parent()?).ok()?;
    match fs::metadata(path) {
        // Opening a pipe would wait for a reader.
        Ok(log) if !log.is_file() => return None,
        Ok(log) if log.len() > MAX_LOG_FILE_BYTES => fs::rename(path, path.with_extension("old.log")).ok()?,
        _ => {}
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).ok()
}
