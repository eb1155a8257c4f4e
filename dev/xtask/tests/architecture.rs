//! What the architecture promises of the code: the direction between crates, no circles between modules, and one name for one public
//! type.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that can't look has failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use xtask::source::{CrateSource, ModuleGraph, TypeDefinition, read_crates};

/// Each crate of ours with those it may know. `protocol ← {config exec journal library models permissions workspace} ← tools ← agent ← cli`.
const MAY_KNOW: [(&str, &[&str]); 13] = [
    ("helve-protocol", &[]),
    ("helve-widgets", &["helve-protocol"]),
    ("helve-config", &["helve-protocol"]),
    ("helve-exec", &["helve-protocol"]),
    ("helve-journal", &["helve-protocol"]),
    ("helve-library", &["helve-protocol"]),
    ("helve-models", &["helve-protocol"]),
    ("helve-permissions", &["helve-protocol"]),
    ("helve-workspace", &["helve-protocol"]),
    ("helve-tools", &["helve-protocol", "helve-exec", "helve-workspace"]),
    (
        "helve-agent",
        &[
            "helve-protocol",
            "helve-journal",
            "helve-library",
            "helve-models",
            "helve-permissions",
            "helve-tools",
            "helve-workspace",
        ],
    ),
    ("helve-tui", &["helve-protocol", "helve-widgets"]),
    (
        "helve-cli",
        &[
            "helve-protocol",
            "helve-config",
            "helve-exec",
            "helve-journal",
            "helve-library",
            "helve-models",
            "helve-permissions",
            "helve-tools",
            "helve-agent",
            "helve-tui",
            "helve-widgets",
            "helve-workspace",
        ],
    ),
];

/// Those that help to make the program and are no part of it.
const DEV: [&str; 2] = ["helve-testkit", "xtask"];

/// What nothing but the program itself may use: it would read the environment, the home folder or the clock.
const ONLY_THE_PROGRAM: [&str; 4] = ["clap", "etcetera", "jiff", "anstream"];

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// What each package of the workspace depends on, tests aside.
fn dependencies() -> Arrows {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path", manifest])
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |package: &Value| {
        let arrows = package["dependencies"].as_array().unwrap().iter();
        arrows.filter(|arrow| arrow["kind"].is_null()).map(|arrow| text(&arrow["name"])).collect()
    };
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (text(&package["name"]), of(package)))
        .collect()
}

/// What is wrong with the arrows, if anything.
fn wrong_arrows(dependencies: &Arrows) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, arrows) in dependencies.iter().filter(|(name, _)| !DEV.contains(&name.as_str())) {
        let Some((_, may_know)) = MAY_KNOW.iter().find(|(name, _)| name == from) else {
            wrong.push(format!("{from} is not in the table of this test"));
            continue;
        };
        for to in arrows {
            let is_ours = dependencies.contains_key(to);
            let is_free = from == "helve-cli" || !ONLY_THE_PROGRAM.contains(&to.as_str());
            if (is_ours && !may_know.contains(&to.as_str())) || !is_free {
                wrong.push(format!("{from} must not know {to}"));
            }
        }
    }
    wrong
}

#[test]
fn crates_know_only_what_is_below_them() {
    assert_eq!(wrong_arrows(&dependencies()), Vec::<String>::new());
}

#[test]
fn a_wrong_arrow_is_noticed() {
    let mut dependencies = dependencies();
    let mut add = |from: &str, to: &str| {
        dependencies.entry(from.to_owned()).or_default().insert(to.to_owned());
    };
    add("helve-protocol", "helve-journal");
    add("helve-journal", "helve-config");
    add("helve-config", "jiff");
    add("helve-config", "helve-testkit");
    add("helve-new", "helve-protocol");
    let expected = [
        "helve-config must not know helve-testkit",
        "helve-config must not know jiff",
        "helve-journal must not know helve-config",
        "helve-new is not in the table of this test",
        "helve-protocol must not know helve-journal",
    ];
    assert_eq!(wrong_arrows(&dependencies), expected);
}

#[test]
fn the_table_names_exactly_the_crates_that_there_are() {
    let names: BTreeSet<&str> = MAY_KNOW.iter().map(|(name, _)| *name).chain(DEV).collect();
    let found = dependencies();
    let found: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(found, names);
}

fn crates() -> Vec<CrateSource> {
    read_crates(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates"))).unwrap()
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let cycles: Vec<String> = crates()
        .iter()
        .flat_map(|krate| ModuleGraph::new(krate).cycles())
        .map(|cycle| format!("{}: {}", cycle.inside, cycle.modules.join(", ")))
        .collect();
    assert_eq!(cycles, Vec::<String>::new());
}

#[test]
fn no_two_public_types_share_a_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let types: Vec<TypeDefinition> = crates().iter().flat_map(CrateSource::types).collect();
    for one in types.into_iter().filter(|one| one.is_public) {
        places.entry(one.name).or_default().push(format!("{}:{}", one.file.display(), one.line));
    }
    places.retain(|_, places| places.len() > 1);
    assert_eq!(places, BTreeMap::new());
}
