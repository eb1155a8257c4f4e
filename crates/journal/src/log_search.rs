//! Finding one event in a log without reading all of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use helve_protocol::Seq;

use crate::log_line::{self, ChainHash};
use crate::reader::MAX_LOG_LINE_BYTES;

const SEARCH_CHUNK_BYTES: u64 = 4096;

/// The hash of a log at an event, or the last event there is before it. The numbers of the lines rise by one, so the place
/// can be bracketed by looking at few of them.
pub(crate) fn find_event(file: &File, first_line: u64, wanted: Seq) -> io::Result<Result<ChainHash, Seq>> {
    let mut low = first_line;
    let mut high = file.metadata()?.len();
    let mut last = Seq::START;
    while low < high {
        let middle = low + (high - low) / 2;
        let start = line_start(file, middle, low)?;
        let Some(text) = read_line(file, start, high)? else {
            // The last line is not complete, so it does not count.
            high = start;
            continue;
        };
        match (log_line::seq_of(&text), log_line::unseal(&text, ChainHash::NONE)) {
            (Some(seq), Some((tip, _))) if seq == wanted => return Ok(Ok(tip)),
            (Some(seq), Some(_)) if seq < wanted => {
                last = last.max(seq);
                low = start + text.len() as u64 + 1;
            }
            // Later, or damaged: what counts is before it.
            _ => high = start,
        }
    }
    Ok(Err(last))
}

/// Where the first line begins whose event is not before `wanted`; the end, if there is none. What is damaged counts as later.
pub(crate) fn find_line_start(file: &File, first_line: u64, wanted: Seq) -> io::Result<u64> {
    let mut low = first_line;
    let mut high = file.metadata()?.len();
    while low < high {
        let middle = low + (high - low) / 2;
        let start = line_start(file, middle, low)?;
        let text = read_line(file, start, high)?.unwrap_or_default();
        match log_line::seq_of(&text) {
            Some(seq) if seq < wanted => low = start + text.len() as u64 + 1,
            _ => high = start,
        }
    }
    Ok(low)
}

/// What the line that ends where another begins claims to be: its hash and its event.
pub(crate) fn claimed_before(
    file: &File,
    start: u64,
    first_line: u64,
) -> io::Result<Option<(ChainHash, Seq)>> {
    if start <= first_line {
        return Ok(None);
    }
    let text = read_line(file, line_start(file, start - 1, first_line)?, start)?.unwrap_or_default();
    let tip = log_line::unseal(&text, ChainHash::NONE).map(|(claimed, _)| claimed);
    Ok(tip.zip(log_line::seq_of(&text)))
}

/// Where the line that covers `position` begins, not before `floor`.
pub(crate) fn line_start(file: &File, position: u64, floor: u64) -> io::Result<u64> {
    let mut end = position;
    while end > floor {
        let start = end.saturating_sub(SEARCH_CHUNK_BYTES).max(floor);
        let chunk = read_at(file, start, end)?;
        if let Some(newline) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(floor)
}

/// The line that begins at `start` without its newline; `None` if it has no end before `limit`, or is longer than lines are.
fn read_line(file: &File, start: u64, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let limit = limit.min(start.saturating_add(MAX_LOG_LINE_BYTES as u64));
    let mut text = Vec::new();
    let mut position = start;
    while position < limit {
        let chunk = read_at(file, position, limit.min(position + SEARCH_CHUNK_BYTES))?;
        if let Some(newline) = chunk.iter().position(|byte| *byte == b'\n') {
            text.extend(chunk.into_iter().take(newline));
            return Ok(Some(text));
        }
        position += chunk.len() as u64;
        text.extend(chunk);
    }
    Ok(None)
}

fn read_at(file: &File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; usize::try_from(end - start).unwrap_or(0)];
    file.read_exact_at(&mut chunk, start)?;
    Ok(chunk)
}
