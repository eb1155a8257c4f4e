//! Why a glob found nothing.

use std::path::Path;
use std::sync::Mutex;

use ignore::overrides::Override;
use ignore::{DirEntry, WalkState};
use tokio_util::sync::CancellationToken;

use crate::search::walk::{held, is_searched, seen_from, shown, visit, walk};

/// So many entries are looked at, to find what is hidden or ignored.
const LOOKED_AT: usize = 50_000;
/// How many of those are named.
const NAMED: usize = 3;

/// What kept a glob from finding a file, in a line that says what to do. It is seen from a folder and was looked for at a place.
pub(crate) fn why(
    root: &Path,
    (folder, glob): (&Path, &str),
    start: &Path,
    filter: &Override,
    stop: &CancellationToken,
) -> String {
    let glob = seen_from(folder, glob);
    let named = folder.join(fixed_folder(&glob).trim_start_matches('/'));
    if !glob.starts_with('!') && !named.is_dir() {
        return format!("[No file matches: there is no folder {}.]", shown(root, &named));
    }
    let hidden = hidden(root, start, filter, stop);
    if !hidden.is_empty() {
        return format!(
            "[No file matches but hidden or ignored ones, such as {}. Give their folder as path.]",
            hidden.join(", ")
        );
    }
    let place = called(root, start);
    match glob.contains(['*', '?', '[', '{', '/']) {
        true => format!("[No file in {place} matches.]"),
        false => format!("[No file in {place} has this name. For a part of a name, write *{glob}*.]"),
    }
}

/// A place where a search began.
pub(crate) fn called(root: &Path, start: &Path) -> String {
    if start == root { "the project".to_owned() } else { shown(root, start) }
}

/// The folders that a glob names before anything that stands for others, without the last slash.
fn fixed_folder(glob: &str) -> &str {
    let plain = glob.find(['*', '?', '[', '{', '\\']).and_then(|end| glob.get(..end)).unwrap_or(glob);
    plain.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Some of the files that match and are hidden or ignored.
fn hidden(root: &Path, start: &Path, filter: &Override, stop: &CancellationToken) -> Vec<String> {
    let mut walk = walk(root, start, None, |entry| entry.file_name() != ".git");
    walk.standard_filters(false).overrides(filter.clone());
    let found = Mutex::new((0, Vec::new()));
    let look = |entry: DirEntry| {
        let (looked_at, names) = &mut *held(&found);
        *looked_at += 1;
        if is_searched(&entry) {
            names.push(shown(root, entry.path()));
        }
        if *looked_at > LOOKED_AT || names.len() >= NAMED { WalkState::Quit } else { WalkState::Continue }
    };
    // What can't be looked at has been told already.
    let _ = visit(&walk, stop, || look);
    let (_, mut names) = found.into_inner().unwrap_or_default();
    names.truncate(NAMED);
    names.sort();
    names
}
