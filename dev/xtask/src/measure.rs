//! `cargo xtask measure`: figures about how the code reads.

use std::collections::BTreeMap;

use xtask::source::{CrateSource, LineCounts, ModuleGraph, TypeDefinition, read_crates};

use crate::run::root;

/// Functions with more lines are listed.
const LONG_FUNCTION_LINES: usize = 60;

pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let crates = read_crates(&root().join("crates"))?;
    show_types(&crates, options.contains(&"--types"));
    show_functions(&crates);
    show_lines(&crates);
    show_cycles(&crates);
    Ok(())
}

fn show_types(crates: &[CrateSource], with_names: bool) {
    let types: Vec<TypeDefinition> = crates.iter().flat_map(CrateSource::types).collect();
    let mut by_name: BTreeMap<&str, Vec<&TypeDefinition>> = BTreeMap::new();
    for one in &types {
        by_name.entry(&one.name).or_default().push(one);
    }
    let shared: Vec<_> = by_name.iter().filter(|(_, found)| found.len() > 1).collect();
    let sharing: usize = shared.iter().map(|(_, found)| found.len()).sum();
    let letters: usize = types.iter().map(|one| one.name.chars().count()).sum();
    println!("types                       {}", types.len());
    println!("types that share a name     {sharing} ({})", percent(sharing, types.len()));
    println!("mean type name              {} letters", ratio(letters, types.len()));
    if with_names {
        for (name, found) in shared {
            println!("  {name}");
            found.iter().for_each(|one| println!("    {}:{}", shown(&one.file), one.line));
        }
    }
}

fn show_functions(crates: &[CrateSource]) {
    let mut functions: Vec<_> = crates.iter().flat_map(CrateSource::functions).collect();
    println!("functions                   {}", functions.len());
    functions.retain(|function| function.lines > LONG_FUNCTION_LINES);
    println!("functions over {LONG_FUNCTION_LINES} lines     {}", functions.len());
    functions.sort_by_key(|function| std::cmp::Reverse(function.lines));
    for function in functions {
        println!("  {:4} {} ({}:{})", function.lines, function.name, shown(&function.file), function.line);
    }
}

fn show_lines(crates: &[CrateSource]) {
    let lines = crates.iter().map(CrateSource::lines).fold(LineCounts::default(), LineCounts::plus);
    println!("lines                       {}", lines.all);
    println!("doc lines per 100           {}", ratio(lines.docs * 100, lines.all));
    println!("comment lines per 100       {}", ratio(lines.comments * 100, lines.all));
}

fn show_cycles(crates: &[CrateSource]) {
    let cycles: Vec<_> = crates.iter().flat_map(|krate| ModuleGraph::new(krate).cycles()).collect();
    let largest = cycles.iter().map(|cycle| cycle.modules.len()).max().unwrap_or(1);
    println!("largest module cycle        {largest}");
    for cycle in cycles {
        println!("  {}: {}", cycle.inside, cycle.modules.join(", "));
    }
}

fn shown(file: &std::path::Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

fn percent(part: usize, whole: usize) -> String {
    format!("{} %", ratio(part * 100, whole))
}

/// With one digit behind the point.
fn ratio(part: usize, whole: usize) -> String {
    let tenths = part * 10 / whole.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}
