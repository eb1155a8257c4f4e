//! What a confined command sees of the files: which places are hidden, which are shown although they lie in a hidden one,
//! which can be written. The innermost place around a path decides about it.
//!
//! Both levels read the same plan: the full one lays mounts by it, the lower one grants rights by it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use crate::confinement::Confinement;
use crate::real_paths::{RealPath, is_at_or_below};

/// As many links as the system follows in one path.
const MAX_FOLLOWED_LINKS: usize = 40;
/// Folders that are replaced as a whole at the full level: what shall be seen in them is laid there again.
const REPLACED_FOLDERS: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/var/run", "/dev"];

/// What a command may do with a place and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceAccess {
    /// It looks empty.
    Hidden,
    /// It can be read, in a place that is hidden otherwise.
    Shown,
    Writable,
    /// Read-only inside what is writable.
    Protected,
    /// The project's view of a folder of the user: it can be written, and the user sees nothing of it.
    Layered,
    /// The project's own, whatever the user has there.
    Own,
    /// Writable, and it can't be moved away: there is something protected in it.
    Pinned,
    /// Another file is seen in its place, read-only.
    Replaced,
}

/// The places that are told apart, by their real paths, and the links that lead to them through hidden folders.
#[derive(Debug, Default)]
pub(super) struct SandboxView {
    places: BTreeMap<RealPath, PlaceAccess>,
    links: BTreeMap<PathBuf, PathBuf>,
}

/// What a hidden folder still contains, by paths relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HiddenFolderRemains {
    /// Places that are laid into it.
    pub(super) places: Vec<PathBuf>,
    /// Links, and where they lead.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl SandboxView {
    /// The view of a confinement whose paths are real. `sockets` are hidden too.
    pub(super) fn new(confinement: &Confinement, sockets: &[PathBuf]) -> SandboxView {
        let mut view = SandboxView::default();
        let shown: Vec<FollowedLinks> = confinement.shown.iter().filter_map(|path| follow(path)).collect();
        // Where two say something about the same path, the later one holds.
        view.extend(shown.iter().map(|shown| shown.to.clone()), PlaceAccess::Shown);
        if let Some(layers) = &confinement.layers {
            view.extend(layers.own.iter().cloned(), PlaceAccess::Own);
            view.extend(layers.over.iter().cloned(), PlaceAccess::Layered);
        }
        view.extend(confinement.writable.iter().cloned(), PlaceAccess::Writable);
        view.protect(confinement);
        view.extend(confinement.replaced.iter().map(|(path, _)| path.clone()), PlaceAccess::Replaced);
        view.extend(confinement.hidden.iter().cloned(), PlaceAccess::Hidden);
        view.extend(sockets.iter().filter_map(|path| path.canonicalize().ok()), PlaceAccess::Hidden);
        view.drop_what_changes_nothing();
        let links = shown.into_iter().flat_map(|shown| shown.links);
        view.links = links.filter(|(link, _)| view.around(link) == Some(PlaceAccess::Hidden)).collect();
        view
    }

    fn extend(&mut self, paths: impl Iterator<Item = PathBuf>, access: PlaceAccess) {
        self.places.extend(paths.map(|path| (RealPath(path), access)));
    }

    /// What can be protected of what shall be. Instead of what is absent, it is the nearest folder around it, unless that
    /// is all that can be written. The folders on the way stay writable, but become mounts too: those can't be moved away
    /// to make others in their place.
    fn protect(&mut self, confinement: &Confinement) {
        let is_inside = |path: &Path| {
            confinement.writable.iter().any(|outer| is_at_or_below(path, outer) && path != outer)
        };
        let (mut protected, mut pinned) = (Vec::new(), BTreeSet::new());
        for path in &confinement.protected {
            let around = path.ancestors().skip(1).take_while(|path| is_inside(path));
            let mut existing =
                std::iter::once(path.as_path()).chain(around).skip_while(|path| !path.exists());
            protected.extend(existing.next().map(Path::to_owned));
            // Where one is known, all around it are.
            for path in existing.map(RealPath::of) {
                if !pinned.insert(path) {
                    break;
                }
            }
        }
        self.extend(pinned.into_iter().map(|RealPath(path)| path), PlaceAccess::Pinned);
        self.extend(protected.into_iter(), PlaceAccess::Protected);
    }

    fn drop_what_changes_nothing(&mut self) {
        let is_needed = |path: &Path, access: PlaceAccess, around: Option<PlaceAccess>| match (access, around)
        {
            // It is out of sight already, or must stay so.
            (
                PlaceAccess::Hidden | PlaceAccess::Protected | PlaceAccess::Pinned | PlaceAccess::Replaced,
                Some(PlaceAccess::Hidden),
            ) => false,
            // Otherwise it can be read already, and perhaps written.
            (PlaceAccess::Shown, around) => {
                matches!(around, Some(PlaceAccess::Hidden | PlaceAccess::Own)) || is_replaced(path)
            }
            (PlaceAccess::Writable | PlaceAccess::Protected, Some(PlaceAccess::Protected)) => false,
            // There must be something to lay it on, or a folder in which that can be made.
            (PlaceAccess::Layered | PlaceAccess::Own, around) => {
                matches!(around, Some(PlaceAccess::Hidden | PlaceAccess::Own)) || path.is_dir()
            }
            _ => true,
        };
        let kept = self.places_around().filter(|(path, access, around)| is_needed(path, *access, *around));
        self.places = kept.map(|(path, access, _)| (RealPath::of(path), access)).collect();
    }

    /// All places, outer ones before those inside, each with what the innermost one around it says.
    pub(super) fn places_around(&self) -> impl Iterator<Item = (&Path, PlaceAccess, Option<PlaceAccess>)> {
        let mut outer: Vec<(&Path, PlaceAccess)> = Vec::new();
        self.places.iter().map(move |(RealPath(path), access)| {
            while outer.pop_if(|(outer, _)| !is_at_or_below(path, outer)).is_some() {}
            let around = outer.last().map(|(_, access)| *access);
            outer.push((path, *access));
            (path.as_path(), *access, around)
        })
    }

    /// What the innermost place around a path says, the path itself aside.
    fn around(&self, path: &Path) -> Option<PlaceAccess> {
        self.place_around(path).map(|(_, access)| access)
    }

    fn place_around<'p>(&self, path: &'p Path) -> Option<(&'p Path, PlaceAccess)> {
        path.ancestors().skip(1).find_map(|outer| Some((outer, *self.places.get(&RealPath::of(outer))?)))
    }

    /// Whether a path is gone with the folder that it is in, since that is the command's own and nothing lays it there again.
    pub(super) fn is_gone(&self, path: &Path) -> bool {
        is_replaced(path) && self.around(path).is_none()
    }

    /// Whether a path can't be read.
    pub(super) fn is_hidden(&self, path: &Path) -> bool {
        let own = self.places.get(&RealPath::of(path)).copied();
        own.or_else(|| self.around(path)) == Some(PlaceAccess::Hidden)
    }

    /// The places below a path, at whatever depth.
    pub(super) fn below<'v>(&'v self, path: &'v Path) -> impl Iterator<Item = (&'v Path, PlaceAccess)> {
        let after = (Bound::Excluded(RealPath::of(path)), Bound::Unbounded);
        self.places
            .range(after)
            .map(|(RealPath(place), access)| (place.as_path(), *access))
            .take_while(move |(place, _)| is_at_or_below(place, path))
    }

    /// What is left in a folder that is hidden.
    pub(super) fn remains_of(&self, folder: &Path) -> HiddenFolderRemains {
        let is_next = |path: &Path| self.place_around(path).is_some_and(|(around, _)| around == folder);
        let inside = |path: &Path| path.strip_prefix(folder).ok().map(Path::to_owned);
        let places = self.below(folder).map(|(path, _)| path).filter(|path| is_next(path));
        let links = self.links.iter().filter(|(link, _)| is_next(link));
        HiddenFolderRemains {
            places: places.filter_map(inside).collect(),
            links: links.filter_map(|(link, to)| Some((inside(link)?, to.clone()))).collect(),
        }
    }
}

impl HiddenFolderRemains {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.links.is_empty()
    }
}

/// Whether a path lies in a folder that the command has for itself.
pub(super) fn is_replaced(path: &Path) -> bool {
    REPLACED_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

/// Where a path leads, and the links on its way.
#[derive(Debug, PartialEq, Eq)]
struct FollowedLinks {
    to: PathBuf,
    links: Vec<(PathBuf, PathBuf)>,
}

/// `None` if it leads nowhere.
fn follow(path: &Path) -> Option<FollowedLinks> {
    let mut rest: VecDeque<OsString> = components(path);
    let (mut to, mut links) = (PathBuf::from("/"), Vec::new());
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            to.pop();
            continue;
        }
        let next = to.join(&name);
        if !fs::symlink_metadata(&next).ok()?.is_symlink() {
            to = next;
            continue;
        }
        let target = fs::read_link(&next).ok()?;
        let mut steps = components(&target);
        steps.append(&mut rest);
        rest = steps;
        if target.is_absolute() {
            to = PathBuf::from("/");
        }
        links.push((next, target));
        if links.len() > MAX_FOLLOWED_LINKS {
            return None;
        }
    }
    Some(FollowedLinks { to, links })
}

fn components(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter(|it| matches!(it, Component::Normal(_) | Component::ParentDir));
    names.map(|it| it.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::ConfinementLevel;

    fn tree(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        names.iter().for_each(|name| fs::create_dir_all(root.join(name)).unwrap());
        (folder, root)
    }

    fn places(view: &SandboxView, root: &Path) -> Vec<(String, PlaceAccess)> {
        let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
        view.places_around().map(|(path, access, _)| (name(path), access)).collect()
    }

    #[test]
    fn the_innermost_place_decides() {
        let (_folder, root) =
            tree(&["home/.cargo/bin", "home/.ssh", "home/work/.git/hooks", "home/work/.env"]);
        let all = |names: &[&str]| names.iter().map(|name| root.join("home").join(name)).collect::<Vec<_>>();
        let confinement = Confinement {
            hidden: all(&["", ".ssh", ".cargo/bin", "work/.env", "absent"]),
            shown: all(&[".cargo", "work/.git", "absent"]),
            writable: all(&["work"]),
            protected: all(&["work/.git/hooks", ".ssh"]),
            ..Confinement::new(ConfinementLevel::Full)
        };
        let view = SandboxView::new(&confinement.settled().unwrap(), &[]);
        let expected = [
            ("home", PlaceAccess::Hidden),
            ("home/.cargo", PlaceAccess::Shown),
            ("home/.cargo/bin", PlaceAccess::Hidden),
            ("home/work", PlaceAccess::Writable),
            ("home/work/.env", PlaceAccess::Hidden),
            ("home/work/.git", PlaceAccess::Pinned),
            ("home/work/.git/hooks", PlaceAccess::Protected),
        ];
        // A shown place inside the workspace takes nothing away from it.
        let expected: Vec<_> = expected.iter().map(|(name, access)| ((*name).to_owned(), *access)).collect();
        assert_eq!(places(&view, &root), expected);
        let is_hidden = |name: &str| view.is_hidden(&root.join(name));
        assert!(is_hidden("home") && is_hidden("home/x") && is_hidden("home/.cargo/bin/x"));
        assert!(!is_hidden("home/.cargo/x") && !is_hidden("home/work/x") && !is_hidden("x"));
        let remains = view.remains_of(&root.join("home"));
        assert_eq!(remains.places, [".cargo", "work"].map(PathBuf::from));
        assert_eq!(remains.links, []);
    }

    #[test]
    fn a_shown_link_is_shown_with_what_it_leads_to() {
        let (_folder, root) = tree(&["home/dotfiles/config/git", "home/other"]);
        let home = root.join("home");
        fs::write(home.join("dotfiles/gitconfig"), "").unwrap();
        symlink("dotfiles/gitconfig", home.join(".gitconfig")).unwrap();
        symlink(home.join("dotfiles/config"), home.join(".config")).unwrap();
        symlink("loop", home.join("loop")).unwrap();
        let shown = [".gitconfig", ".config/git", "loop"].map(|name| home.join(name)).to_vec();
        let confinement =
            Confinement { hidden: vec![home.clone()], shown, ..Confinement::new(ConfinementLevel::Full) };
        let view = SandboxView::new(&confinement, &[]);
        let remains = view.remains_of(&home);
        assert_eq!(remains.places, ["dotfiles/config/git", "dotfiles/gitconfig"].map(PathBuf::from));
        let links = [
            (PathBuf::from(".config"), home.join("dotfiles/config")),
            (".gitconfig".into(), "dotfiles/gitconfig".into()),
        ];
        assert_eq!(remains.links, links);
    }

    #[test]
    fn what_is_absent_is_protected_by_the_folder_around_it() {
        let (_folder, root) = tree(&[".git/hooks"]);
        let confinement = Confinement {
            writable: vec![root.clone()],
            protected: [".git/hooks/new", "absent/x"].map(|path| root.join(path)).to_vec(),
            ..Confinement::new(ConfinementLevel::Full)
        };
        let found = places(&SandboxView::new(&confinement, &[]), &root);
        let expected = [
            ("", PlaceAccess::Writable),
            (".git", PlaceAccess::Pinned),
            (".git/hooks", PlaceAccess::Protected),
        ];
        assert_eq!(found, expected.map(|(name, access)| (name.to_owned(), access)));
    }
}
