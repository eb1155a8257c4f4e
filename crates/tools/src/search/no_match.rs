//! Why a glob found nothing.

use std::path::Path;
use std::sync::Mutex;

use ignore::overrides::Override;
use ignore::{DirEntry, WalkState};
use tokio_util::sync::CancellationToken;

use crate::display::display_path;
use crate::search::walk::{
    SearchStart, is_searched, lock_ignoring_poison, seen_from, tree_metadata, visit, walk,
};

/// So many entries are looked at, to find what is hidden or ignored.
const MAX_HIDDEN_ENTRIES_SEARCHED: usize = 50_000;
/// How many of those are named.
const MAX_HIDDEN_FILES_NAMED: usize = 3;

/// What kept a glob from finding a file, in a line that says what to do. It is seen from a folder and was looked for at a place.
pub(crate) fn explain_no_match(
    start: &SearchStart,
    (folder, glob): (&Path, &str),
    filter: &Override,
    stop: &CancellationToken,
) -> String {
    let glob = seen_from(folder, glob);
    let named = folder.join(fixed_folder(&glob).trim_start_matches('/'));
    if !glob.starts_with('!') && !named.is_dir() {
        return format!("[No file matches: there is no folder {}.]", display_path(&start.root, &named));
    }
    let hidden = hidden(start, filter, stop);
    if !hidden.is_empty() {
        return format!(
            "[No file matches but hidden or ignored ones, such as {}. Give their folder as path.]",
            hidden.join(", ")
        );
    }
    let place = search_start_name(start);
    match glob.contains(['*', '?', '[', '{', '/']) {
        true => format!("[No file in {place} matches.]"),
        false => format!("[No file in {place} has this name. For a part of a name, write *{glob}*.]"),
    }
}

/// A place where a search began.
pub(crate) fn search_start_name(start: &SearchStart) -> String {
    if start.path == start.root { "the project".to_owned() } else { display_path(&start.root, &start.path) }
}

/// The folders that a glob names before anything that stands for others, without the last slash.
fn fixed_folder(glob: &str) -> &str {
    let plain = glob.find(['*', '?', '[', '{', '\\']).and_then(|end| glob.get(..end)).unwrap_or(glob);
    plain.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Some of the files that match and are hidden or ignored.
fn hidden(start: &SearchStart, filter: &Override, stop: &CancellationToken) -> Vec<String> {
    let Ok(mut walk) = walk(start, None, |entry| entry.file_name() != ".git") else { return Vec::new() };
    walk.builder.standard_filters(false).overrides(filter.clone());
    let found = Mutex::new((0, Vec::new()));
    let look = |entry: DirEntry| {
        let (looked_at, names) = &mut *lock_ignoring_poison(&found);
        *looked_at += 1;
        if is_searched(&entry) && tree_metadata(&entry).is_some() {
            names.push(display_path(&start.root, entry.path()));
        }
        if *looked_at > MAX_HIDDEN_ENTRIES_SEARCHED || names.len() >= MAX_HIDDEN_FILES_NAMED {
            WalkState::Quit
        } else {
            WalkState::Continue
        }
    };
    // What can't be looked at has been told already.
    let _ = visit(&walk, stop, || look);
    let (_, mut names) = found.into_inner().unwrap_or_default();
    names.truncate(MAX_HIDDEN_FILES_NAMED);
    names.sort();
    names
}
