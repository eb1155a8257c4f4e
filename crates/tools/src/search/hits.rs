//! What `grep` finds: in one file, and in all of them.

use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;
use std::io;
use std::path::{Path, PathBuf};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::display::count_with_noun;
use crate::search::walk::MAX_SEARCH_OUTPUT_BYTES;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrepMode {
    #[default]
    Content,
    Files,
    Count,
}

/// What is shown of a line.
const MAX_HIT_LINE_BYTES: usize = 500;
/// What is shown of it before its match.
const HIT_LEAD_BYTES: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HitLineKind {
    Match,
    Before,
    After,
    /// Lines are left out between two groups.
    Gap,
    Note,
}

#[derive(Debug)]
struct HitLine {
    kind: HitLineKind,
    text: String,
}

/// What was found in one file.
#[derive(Debug, Default)]
pub(crate) struct FileHits {
    /// Lines that match; whole matches where they may go over several lines and are only counted.
    total: u64,
    /// So much of it as can be shown.
    lines: Vec<HitLine>,
    bytes: usize,
    /// There are lines that match and are not among them.
    is_cut: bool,
}

impl FileHits {
    pub(crate) fn is_any(&self) -> bool {
        self.total > 0
    }

    fn push(&mut self, kind: HitLineKind, text: String) {
        self.bytes += text.len() + 1;
        self.lines.push(HitLine { kind, text });
    }

    fn shown(&self) -> usize {
        self.lines.iter().filter(|line| line.kind == HitLineKind::Match).count()
    }

    /// The first matches with the lines around them.
    fn first(&self, limit: usize) -> &[HitLine] {
        let mut matches = 0;
        let mut end = self.lines.len();
        for (at, line) in self.lines.iter().enumerate() {
            matches += usize::from(line.kind == HitLineKind::Match);
            if matches > limit {
                end = at;
                break;
            }
        }
        let lines = self.lines.get(..end).unwrap_or_default();
        // What leads up to a match that is not there tells nothing.
        let kept =
            lines.iter().rposition(|line| !matches!(line.kind, HitLineKind::Before | HitLineKind::Gap));
        kept.and_then(|last| lines.get(..=last)).unwrap_or_default()
    }
}

/// Takes what the searcher finds in one file.
pub(crate) struct FileHitsSink<'a> {
    pub(crate) matcher: &'a RegexMatcher,
    pub(crate) hits: FileHits,
    mode: GrepMode,
    limit: usize,
    shown: usize,
    is_binary: bool,
}

impl<'a> FileHitsSink<'a> {
    pub(crate) fn new(mode: GrepMode, matcher: &'a RegexMatcher, limit: usize) -> FileHitsSink<'a> {
        FileHitsSink { matcher, hits: FileHits::default(), mode, limit, shown: 0, is_binary: false }
    }

    fn take_lines(&mut self, found: &SinkMatch<'_>) {
        let first = found.line_number().unwrap_or(1);
        for (number, line) in (first..).zip(found.lines()) {
            self.hits.total += 1;
            self.hits.is_cut |= self.shown == self.limit || self.hits.bytes > MAX_SEARCH_OUTPUT_BYTES;
            if !self.hits.is_cut {
                let at = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
                self.hits.push(HitLineKind::Match, format!("{number}:{}", cut(line, at)));
                self.shown += 1;
            }
        }
    }

    fn matches_in(&self, searcher: &Searcher, found: &SinkMatch<'_>) -> u64 {
        if !searcher.multi_line_with_matcher(self.matcher) {
            return 1;
        }
        let range = found.bytes_range_in_buffer();
        let mut count = 0;
        let _ = self.matcher.find_iter_at(found.buffer(), range.start, |one| {
            let is_inside = one.start() < range.end;
            count += u64::from(is_inside);
            is_inside
        });
        count.max(1)
    }
}

impl Sink for FileHitsSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.mode {
            GrepMode::Content if self.is_binary => {
                self.hits.total += 1;
                return Ok(false);
            }
            GrepMode::Content => self.take_lines(found),
            GrepMode::Count => self.hits.total += self.matches_in(searcher, found),
            GrepMode::Files => self.hits.total = 1,
        }
        Ok(self.mode != GrepMode::Files)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        if !self.hits.is_cut && !self.is_binary {
            let kind = match found.kind() {
                SinkContextKind::Before => HitLineKind::Before,
                SinkContextKind::After | SinkContextKind::Other => HitLineKind::After,
            };
            let number = found.line_number().unwrap_or(1);
            self.hits.push(kind, format!("{number}-{}", cut(found.bytes(), 0)));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if !self.hits.is_cut && !self.is_binary {
            self.hits.push(HitLineKind::Gap, "--".to_owned());
        }
        Ok(true)
    }

    fn binary_data(&mut self, searcher: &Searcher, _: u64) -> io::Result<bool> {
        // Where the search goes on, its matches are counted and not shown.
        self.is_binary = searcher.binary_detection().convert_byte().is_some();
        Ok(true)
    }

    fn finish(&mut self, searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        let Some(offset) = finish.binary_byte_offset() else { return Ok(()) };
        let is_skipped = searcher.binary_detection().quit_byte().is_some();
        match self.mode {
            GrepMode::Files | GrepMode::Count if is_skipped => self.hits.total = 0,
            GrepMode::Content if self.hits.total > 0 => {
                let rest = if is_skipped { "was not searched" } else { "has a match" };
                let note = format!("[binary from about byte {offset} on, which {rest}]");
                self.hits.push(HitLineKind::Note, note);
            }
            _ => {}
        }
        Ok(())
    }
}

/// A line without its end; of a long one, what is around the match.
fn cut(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_HIT_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = letter_at(line, at.saturating_sub(HIT_LEAD_BYTES).min(line.len() - MAX_HIT_LINE_BYTES));
    let end = letter_at(line, start + MAX_HIT_LINE_BYTES);
    let note = |bytes: usize, text: String| if bytes == 0 { String::new() } else { text };
    format!(
        "{}{}{}",
        note(start, format!("[{start} bytes cut] ")),
        String::from_utf8_lossy(line.get(start..end).unwrap_or_default()),
        note(line.len() - end, format!(" [{} bytes cut]", line.len() - end)),
    )
}

/// Where the letter begins that a byte belongs to.
fn letter_at(line: &[u8], at: usize) -> usize {
    let is_inside = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (at.saturating_sub(3)..=at).rev().find(|at| !is_inside(at)).unwrap_or(at)
}

/// What was found in all files: the first of it in the order of paths, whichever thread came first, and how much there is.
#[derive(Debug)]
pub(crate) struct GrepResults {
    mode: GrepMode,
    limit: usize,
    kept: BTreeMap<PathBuf, FileHits>,
    /// Of what is kept.
    units: usize,
    bytes: usize,
    /// Of everything.
    searched: u64,
    files: u64,
    total: u64,
}

impl GrepResults {
    pub(crate) fn new(mode: GrepMode, limit: usize) -> GrepResults {
        GrepResults {
            mode,
            limit,
            kept: BTreeMap::new(),
            units: 0,
            bytes: 0,
            searched: 0,
            files: 0,
            total: 0,
        }
    }

    pub(crate) fn add(&mut self, path: PathBuf, hits: FileHits) {
        self.searched += 1;
        if hits.total == 0 {
            return;
        }
        self.files += 1;
        self.total += hits.total;
        self.units += units_of(self.mode, &hits);
        self.bytes += bytes_of(&path, &hits);
        self.kept.insert(path, hits);
        self.drop_what_never_shows();
    }

    fn drop_what_never_shows(&mut self) {
        while let Some(last) = self.kept.last_entry() {
            let units = units_of(self.mode, last.get());
            let bytes = bytes_of(last.key(), last.get());
            if self.units - units < self.limit && self.bytes - bytes < MAX_SEARCH_OUTPUT_BYTES {
                break;
            }
            OccupiedEntry::remove(last);
            self.units -= units;
            self.bytes -= bytes;
        }
    }

    /// Whether no file was searched, so that nothing can be said of any.
    pub(crate) fn is_of_nothing(&self) -> bool {
        self.searched == 0
    }

    /// The text for the model, and what it must know of it.
    pub(crate) fn told(&self) -> (String, Option<String>) {
        let mut told = GrepReport::default();
        for (path, hits) in &self.kept {
            let path = path.to_string_lossy();
            match self.mode {
                GrepMode::Files => told.add_file(&path),
                GrepMode::Count => told.add_file(&format!("{path}:{}", hits.total)),
                GrepMode::Content => told.add_hits(&path, hits, self.limit),
            }
        }
        let note = self.note(&told);
        (told.text, note)
    }

    fn note(&self, told: &GrepReport) -> Option<String> {
        let all = self.summary();
        match self.mode {
            _ if self.searched == 0 => None,
            _ if self.files == 0 => {
                Some(format!("[No match in {}.]", count_with_noun(self.searched, "file", "files")))
            }
            GrepMode::Content if told.is_cut || self.kept.len() as u64 != self.files => Some(format!(
                "[The first {} of {all} are shown. Narrow the search, or use mode files or count.]",
                told.lines
            )),
            GrepMode::Files | GrepMode::Count if told.files < self.files => Some(format!(
                "[The first {} of {} are shown. Narrow the search.]",
                told.files,
                count_with_noun(self.files, "file", "files")
            )),
            _ => None,
        }
    }

    /// How much there is, in a few words.
    pub(crate) fn summary(&self) -> String {
        let files = count_with_noun(self.files, "file", "files");
        match self.mode {
            GrepMode::Files => files,
            GrepMode::Content => {
                format!("{} in {files}", count_with_noun(self.total, "matching line", "matching lines"))
            }
            GrepMode::Count => format!("{} in {files}", count_with_noun(self.total, "match", "matches")),
        }
    }
}

/// What the limit counts.
fn units_of(mode: GrepMode, hits: &FileHits) -> usize {
    if mode == GrepMode::Content { hits.shown() } else { 1 }
}

fn bytes_of(path: &Path, hits: &FileHits) -> usize {
    path.as_os_str().len() + 2 + hits.bytes
}

/// The text as it grows.
#[derive(Default)]
struct GrepReport {
    text: String,
    lines: usize,
    files: u64,
    is_cut: bool,
}

impl GrepReport {
    fn add_file(&mut self, line: &str) {
        if self.text.len() + line.len() < MAX_SEARCH_OUTPUT_BYTES {
            self.text.push_str(line);
            self.text.push('\n');
            self.files += 1;
        }
    }

    fn add_hits(&mut self, path: &str, hits: &FileHits, limit: usize) {
        let room = limit.saturating_sub(self.lines);
        let lines = hits.first(room);
        self.is_cut |= room < hits.shown() || hits.is_cut;
        if lines.is_empty() {
            return;
        }
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{gap}{path}\n"));
        for line in lines {
            if self.text.len() + line.text.len() >= MAX_SEARCH_OUTPUT_BYTES {
                self.is_cut = true;
                return;
            }
            self.text.push_str(&line.text);
            self.text.push('\n');
            self.lines += usize::from(line.kind == HitLineKind::Match);
        }
    }
}
