//! What a confined command may reach, and how it is told to the keeper.

use std::fmt;
use std::path::{Path, PathBuf};

use helve_protocol::ConfinementLevel;

use crate::real_paths::{PathResolution, RealPathCache};
use crate::spec_encoding::{SpecReader, put_bytes, put_count};

/// How much memory files in an empty `/tmp` may take if nothing else is said.
const DEFAULT_SCRATCH_BYTES: u64 = 64 << 20;

/// What a command may reach. Everything else can be read, and neither be written nor be spoken to.
///
/// At [`ConfinementLevel::Full`], `/tmp`, `/var/tmp`, `/run` and `/dev` are the command's own, and sockets of other programs are
/// hidden as far as they are known when it starts. At [`ConfinementLevel::Landlock`], `/tmp` is as read-only as the rest: make a
/// folder for temporary files writable, and name it in `TMPDIR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// As found by [`probe`](crate::probe()). The order is refused where less can be had.
    pub level: ConfinementLevel,
    /// Folders and files that can be written: the workspace. They must exist.
    pub writable: Vec<PathBuf>,
    /// Read-only inside what is writable; instead of something absent, the nearest folder around it that is inside too.
    /// Only at [`ConfinementLevel::Full`].
    pub protected: Vec<PathBuf>,
    /// Secrets, sockets, the home folder: they look empty. At [`ConfinementLevel::Landlock`] what is in them can't be
    /// read, though its names are seen, and they must not lie inside what is writable.
    pub hidden: Vec<PathBuf>,
    /// What can be read although it lies in something hidden, as far as it exists. A link is shown with what it leads
    /// to. Of places inside each other, the innermost decides: what is writable or shown in something hidden is seen,
    /// and what is hidden in something shown is not.
    pub shown: Vec<PathBuf>,
    /// Files that look like another one, read-only: each with what is seen instead. What is absent stays so. Only at
    /// [`ConfinementLevel::Full`].
    pub replaced: Vec<(PathBuf, PathBuf)>,
    /// The only programs that can be run, where the command was given something that no other program shall have. The
    /// order is refused where that can't be had.
    pub programs: Option<Vec<PathBuf>>,
    /// Whether the command can start no other process: threads are all that it can make.
    pub single_process: bool,
    /// Folders of the user that the command changes only for its project. Only at [`ConfinementLevel::Full`], where
    /// [`probe`](crate::probe()) found that it can be done.
    pub layers: Option<PrivateLayers>,
    /// A folder that the command sees as `/tmp`, so that the next command finds what this one left. Without it, `/tmp`
    /// is empty and is gone with the command. Only at [`ConfinementLevel::Full`].
    pub temporary: Option<PathBuf>,
    /// How many bytes of memory files in an empty `/tmp`, `/var/tmp` and `/dev/shm` may take, together.
    pub scratch: u64,
    pub network: NetworkAccess,
}

/// Folders of the user, such as caches of tools, that a command reads and changes as if they were its own: the user and
/// other projects see nothing of the changes.
///
/// One command at a time keeps its changes. Whoever runs beside it sees those that were kept before, and its own are
/// forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateLayers {
    /// Where the project's changes are kept; made if it is absent. It must not lie on an overlay, nor in what commands see.
    pub folder: PathBuf,
    /// The folder that most of the others are in: the home folder.
    pub base: PathBuf,
    /// Folders that are seen as the user has them, with the project's changes. One that is absent is empty.
    pub over: Vec<PathBuf>,
    /// Folders in which the command sees what its project's commands left there, and nothing else.
    pub own: Vec<PathBuf>,
    /// Whether changes in `over` are kept for the next command.
    pub is_kept: bool,
}

/// Whether a command reaches other machines, and servers on this one. Without, it has a loopback of its own at
/// [`ConfinementLevel::Full`], and no sockets at all at [`ConfinementLevel::Landlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkAccess {
    Off,
    On,
    /// Off, with a loopback that others have too: [`start_beside`](crate::start_sharing_network). Only at [`ConfinementLevel::Full`].
    Shared,
}

const NETWORK_ENCODING: [NetworkAccess; 3] = [NetworkAccess::Off, NetworkAccess::On, NetworkAccess::Shared];

/// A part of confinement, which may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfinementPart {
    /// The order asks for what its level can't do.
    Request,
    /// This system or processor is none that commands can be confined on.
    System,
    Namespaces,
    Loopback,
    Mounts,
    Layers,
    Proc,
    Privileges,
    Landlock,
    Filter,
}

const CONFINEMENT_PARTS: [ConfinementPart; 10] = [
    ConfinementPart::Request,
    ConfinementPart::System,
    ConfinementPart::Namespaces,
    ConfinementPart::Loopback,
    ConfinementPart::Mounts,
    ConfinementPart::Layers,
    ConfinementPart::Proc,
    ConfinementPart::Privileges,
    ConfinementPart::Landlock,
    ConfinementPart::Filter,
];

impl ConfinementPart {
    /// What can be done about it, once, by whoever owns the machine.
    pub fn remedy(self) -> &'static str {
        match self {
            ConfinementPart::Request => {
                "Ask for less: only the full level protects paths inside writable ones, and `/` is never writable."
            }
            ConfinementPart::System => "Run without confinement, or in a container or virtual machine.",
            ConfinementPart::Namespaces => {
                "Allow user namespaces: `sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), \
                 `sysctl kernel.unprivileged_userns_clone=1` (Debian), `sysctl user.max_user_namespaces=15000`; \
                 in a container, start it with a seccomp profile that allows `unshare`."
            }
            ConfinementPart::Loopback => "Allow network namespaces: `sysctl user.max_net_namespaces=15000`.",
            ConfinementPart::Mounts => {
                "Check that the named paths exist; Linux 5.12 or newer is needed, and an AppArmor profile or container \
                 must not refuse mounts."
            }
            ConfinementPart::Layers => {
                "Set HELVE_HOME to a folder on a file system that overlays can be on, such as ext4, XFS or Btrfs."
            }
            ConfinementPart::Proc => {
                "In a container, `/proc` is partly masked: start it with `--security-opt systempaths=unconfined`."
            }
            ConfinementPart::Privileges => {
                "Let the program that started Helve leave it the right to give up privileges."
            }
            ConfinementPart::Landlock => {
                "Boot Linux 6.2 or newer with Landlock among the security modules (`lsm=landlock,…` on the kernel's command line)."
            }
            ConfinementPart::Filter => "Use a kernel with seccomp filters, on x86-64 or ARM64.",
        }
    }

    pub(crate) fn to_number(self) -> i32 {
        let at = CONFINEMENT_PARTS.iter().position(|part| *part == self).unwrap_or_default();
        i32::try_from(at).unwrap_or_default()
    }

    pub(crate) fn from_number(number: i32) -> Option<ConfinementPart> {
        CONFINEMENT_PARTS.get(usize::try_from(number).ok()?).copied()
    }
}

impl fmt::Display for ConfinementPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfinementPart::Request => "what is asked for",
            ConfinementPart::System => "this system",
            ConfinementPart::Namespaces => "namespaces",
            ConfinementPart::Loopback => "a network of its own",
            ConfinementPart::Mounts => "the view of the files",
            ConfinementPart::Layers => "private layers over the caches",
            ConfinementPart::Proc => "a view of its own processes",
            ConfinementPart::Privileges => "giving up privileges",
            ConfinementPart::Landlock => "Landlock",
            ConfinementPart::Filter => "the filter of system calls",
        })
    }
}

impl Confinement {
    /// Nothing can be written, nothing is hidden, and there is no network.
    pub fn new(level: ConfinementLevel) -> Confinement {
        Confinement {
            level,
            writable: Vec::new(),
            protected: Vec::new(),
            hidden: Vec::new(),
            shown: Vec::new(),
            replaced: Vec::new(),
            programs: None,
            single_process: false,
            layers: None,
            temporary: None,
            scratch: DEFAULT_SCRATCH_BYTES,
            network: NetworkAccess::Off,
        }
    }

    /// The same with the real names of all paths, and without what is absent and need not be hidden. `None` if it asks for what its level can't do, or a link leads out of it.
    pub(crate) fn settled(&self) -> Option<Confinement> {
        let mut names = RealPathCache::default();
        let hidden: Vec<PathResolution> = self.hidden.iter().map(|path| names.find(path)).collect();
        let all = hidden.iter().map(|found| found.path.clone()).collect();
        let settled = Confinement { hidden: all, ..self.resolved(&mut names) };
        if !self.links_stay_inside(&mut names) || !settled.is_possible() {
            return None;
        }
        let hidden = hidden.into_iter().filter(|found| found.exists).map(|found| found.path).collect();
        Some(Confinement { hidden, ..settled })
    }

    /// Whether what lies inside something writable really does: a command before could have put a link there, so that the
    /// next one could write where that leads.
    fn links_stay_inside(&self, names: &mut RealPathCache) -> bool {
        let is_kept = |inner: &PathBuf| {
            let mut around = self.writable.iter().filter(|outer| inner.starts_with(outer));
            around.all(|outer| names.of(inner).starts_with(names.of(outer)))
        };
        self.writable.iter().chain(&self.temporary).all(is_kept)
    }

    /// Whether its level can do what it asks for.
    fn is_possible(&self) -> bool {
        let is_rooted = |paths: &[PathBuf]| paths.iter().all(|path| path.is_absolute());
        let all = [&self.writable, &self.protected, &self.hidden, &self.shown];
        let is_inside = |hidden: &Path| self.writable.iter().any(|path| hidden.starts_with(path));
        let has_what_it_needs = match self.level {
            ConfinementLevel::None => false,
            ConfinementLevel::Landlock => {
                let is_overlaid = !self.protected.is_empty()
                    || !self.replaced.is_empty()
                    || self.temporary.is_some()
                    || self.layers.is_some();
                let is_shared = self.network == NetworkAccess::Shared;
                !is_overlaid && !is_shared && !self.hidden.iter().any(|path| is_inside(path))
            }
            ConfinementLevel::Full => true,
        };
        has_what_it_needs
            && all.into_iter().all(|paths| is_rooted(paths))
            && self.replaced.iter().all(|(path, by)| path.is_absolute() && by.is_absolute())
            && self.layers.iter().flat_map(PrivateLayers::paths).all(|path| path.is_absolute())
            && self.temporary.iter().chain(&self.writable).all(|path| path.parent().is_some())
    }

    /// With the real names of all paths, so that they can be compared: what a link leads to is what counts.
    /// Without what is hidden.
    fn resolved(&self, names: &mut RealPathCache) -> Confinement {
        let replaced = self.replaced.iter().map(|(path, by)| (names.find(path), names.of(by)));
        let replaced = replaced.filter(|(path, _)| path.exists).map(|(path, by)| (path.path, by)).collect();
        let mut all = |paths: &[PathBuf]| paths.iter().map(|path| names.of(path)).collect();
        Confinement {
            replaced,
            writable: all(&self.writable),
            protected: all(&self.protected),
            hidden: Vec::new(),
            // Links among these are followed one by one: they are shown too.
            shown: self.shown.clone(),
            programs: self.programs.clone(),
            layers: self.layers.as_ref().map(|layers| layers.resolved(names)),
            temporary: self.temporary.as_deref().map(|path| names.of(path)),
            ..*self
        }
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put_count(
            to,
            match self.level {
                ConfinementLevel::None => 0,
                ConfinementLevel::Landlock => 1,
                ConfinementLevel::Full => 2,
            },
        );
        put_count(
            to,
            NETWORK_ENCODING.iter().position(|network| *network == self.network).unwrap_or_default(),
        );
        to.extend(self.scratch.to_le_bytes());
        put_count(to, usize::from(self.programs.is_some()));
        put_count(to, usize::from(self.single_process));
        let temporary = self.temporary.as_slice();
        let programs = self.programs.as_deref().unwrap_or_default();
        for paths in [&self.writable, &self.protected, &self.hidden, &self.shown, programs, temporary] {
            put_count(to, paths.len());
            paths.iter().for_each(|path| put_bytes(to, path.as_os_str().as_encoded_bytes()));
        }
        put_count(to, self.replaced.len());
        for path in self.replaced.iter().flat_map(|(path, by)| [path, by]) {
            put_bytes(to, path.as_os_str().as_encoded_bytes());
        }
        put_count(to, usize::from(self.layers.is_some()));
        let Some(layers) = &self.layers else { return };
        put_count(to, usize::from(layers.is_kept));
        put_count(to, layers.over.len());
        put_count(to, layers.own.len());
        layers.paths().for_each(|path| put_bytes(to, path.as_os_str().as_encoded_bytes()));
    }

    pub(crate) fn read(from: &mut SpecReader<'_>) -> Option<Confinement> {
        let level = match from.count()? {
            0 => ConfinementLevel::None,
            1 => ConfinementLevel::Landlock,
            2 => ConfinementLevel::Full,
            _ => return None,
        };
        let network = *NETWORK_ENCODING.get(usize::try_from(from.count()?).ok()?)?;
        let scratch = from.count()?;
        let has_programs = from.count()? != 0;
        let single_process = from.count()? != 0;
        let mut paths =
            || (0..from.count()?).map(|_| from.text().map(PathBuf::from)).collect::<Option<Vec<_>>>();
        let (writable, protected, hidden, shown) = (paths()?, paths()?, paths()?, paths()?);
        let programs = Some(paths()?).filter(|_| has_programs);
        let mut temporary = paths()?;
        let last = temporary.pop();
        let count = from.count()?;
        let mut pair = || Some((from.text()?.into(), from.text()?.into()));
        let replaced = (0..count).map(|_| pair()).collect::<Option<_>>()?;
        let layers = if from.flag()? { Some(PrivateLayers::read(from)?) } else { None };
        let confinement = Confinement {
            level,
            writable,
            protected,
            hidden,
            shown,
            replaced,
            programs,
            single_process,
            layers,
            temporary: last,
            scratch,
            network,
        };
        temporary.is_empty().then_some(confinement)
    }
}

impl PrivateLayers {
    fn read(from: &mut SpecReader<'_>) -> Option<PrivateLayers> {
        let (is_kept, over, own) = (from.flag()?, from.count()?, from.count()?);
        let mut path = || from.text().map(PathBuf::from);
        let (folder, base) = (path()?, path()?);
        // Collected one by one: a count that lies ends at the end of the bytes, and reserves nothing.
        let over = (0..over).map(|_| path()).collect::<Option<_>>()?;
        let own = (0..own).map(|_| path()).collect::<Option<_>>()?;
        Some(PrivateLayers { folder, base, over, own, is_kept })
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.folder, &self.base].into_iter().chain(&self.over).chain(&self.own)
    }

    fn resolved(&self, names: &mut RealPathCache) -> PrivateLayers {
        let mut all = |paths: &[PathBuf]| paths.iter().map(|path| names.of(path)).collect();
        PrivateLayers {
            over: all(&self.over),
            own: all(&self.own),
            folder: names.of(&self.folder),
            base: names.of(&self.base),
            is_kept: self.is_kept,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn paths() -> impl Strategy<Value = Vec<PathBuf>> {
        vec("[a-z/.]{0,12}".prop_map(PathBuf::from), 0..4)
    }

    prop_compose! {
        pub(crate) fn confinement()(
            level in prop::sample::select(vec![ConfinementLevel::None, ConfinementLevel::Landlock, ConfinementLevel::Full]),
            (writable, protected, hidden, shown) in (paths(), paths(), paths(), paths()),
            (over, own, is_kept) in (paths(), paths(), any::<Option<bool>>()),
            temporary in prop::option::of("[a-z/]{0,9}"), programs in prop::option::of(paths()),
            scratch: u64, network in 0..NETWORK_ENCODING.len(), replaced in vec(("[a-z/]{0,9}", "[a-z/]{0,9}"), 0..3), single_process: bool,
        ) -> Confinement {
            let replaced = replaced.into_iter().map(|(path, by)| (path.into(), by.into())).collect();
            let network = NETWORK_ENCODING[network];
            let temporary = temporary.map(PathBuf::from);
            let layers = is_kept.map(|is_kept| {
                PrivateLayers { folder: "/private".into(), base: "/home".into(), over, own, is_kept }
            });
            Confinement {
                level, writable, protected, hidden, shown, replaced, programs, single_process, layers, temporary, scratch, network,
            }
        }
    }

    fn plain(level: ConfinementLevel) -> Confinement {
        Confinement { writable: vec!["/work".into()], ..Confinement::new(level) }
    }

    #[test]
    fn a_level_is_asked_only_for_what_it_can_do() {
        assert!(!plain(ConfinementLevel::None).is_possible());
        let full = plain(ConfinementLevel::Full);
        assert!(full.is_possible());
        assert!(Confinement { protected: vec!["/work/.git".into()], ..full.clone() }.is_possible());
        assert!(!Confinement { writable: vec!["/".into()], ..full.clone() }.is_possible());
        assert!(!Confinement { hidden: vec!["relative".into()], ..full }.is_possible());
        let less = plain(ConfinementLevel::Landlock);
        assert!(less.is_possible());
        assert!(!Confinement { protected: vec!["/work/.git".into()], ..less.clone() }.is_possible());
        assert!(Confinement { hidden: vec!["/home/secret".into()], ..less.clone() }.is_possible());
        assert!(!Confinement { hidden: vec!["/work/secret".into()], ..less }.is_possible());
    }

    #[test]
    fn what_is_hidden_inside_something_writable_by_a_link_is_impossible_at_the_lower_level() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("folder")).unwrap();
        std::fs::write(root.join("folder/secret"), "").unwrap();
        std::os::unix::fs::symlink("folder", root.join("link")).unwrap();
        let less = Confinement { writable: vec![root.join("folder")], ..plain(ConfinementLevel::Landlock) };
        let hidden = Confinement { hidden: vec![root.join("link/secret")], ..less };
        assert!(hidden.is_possible());
        assert!(hidden.settled().is_none());
    }

    #[test]
    fn a_link_inside_what_is_writable_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("work/cache")).unwrap();
        let confinement = Confinement {
            writable: vec![root.join("work"), root.join("work/cache")],
            temporary: Some(root.join("work/tmp")),
            ..plain(ConfinementLevel::Full)
        };
        assert!(confinement.settled().is_some());
        std::os::unix::fs::symlink("/usr", root.join("work/tmp")).unwrap();
        assert!(confinement.settled().is_none());
        std::fs::remove_file(root.join("work/tmp")).unwrap();
        std::fs::remove_dir(root.join("work/cache")).unwrap();
        std::os::unix::fs::symlink("..", root.join("work/cache")).unwrap();
        assert!(confinement.settled().is_none());
    }

    #[test]
    fn every_part_arrives_as_it_was_sent() {
        for part in CONFINEMENT_PARTS {
            assert_eq!(ConfinementPart::from_number(part.to_number()), Some(part));
        }
        assert_eq!(ConfinementPart::from_number(-1), None);
        assert_eq!(ConfinementPart::from_number(99), None);
    }
}
