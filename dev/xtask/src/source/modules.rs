//! Which modules of a crate use which, and where they use each other in a circle.
//!
//! A module uses another if a path in it leads there, from `crate` or from `super`, through re-exports to where the name is
//! defined. Modules are compared with their siblings: a folder counts as one module among those beside it, and inside it its own
//! modules are compared with each other. A module and those inside it may use each other freely.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;

use super::{CrateSource, ModuleSource, attributes, is_for_tests};

/// Where a module is: the names from the root of its crate.
type ModulePath = Vec<String>;

/// Modules that use each other in a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleCycle {
    /// The module that they are in.
    pub inside: String,
    pub modules: Vec<String>,
}

/// Which modules of one crate use which.
pub struct ModuleGraph<'a> {
    krate: &'a CrateSource,
    modules: BTreeMap<ModulePath, &'a ModuleSource>,
    /// What each module makes of the names of others: `pub use`, and plain `use` as well.
    imports: BTreeMap<ModulePath, BTreeMap<String, Vec<String>>>,
}

/// More re-exports of one name than that are a circle themselves.
const MAX_REEXPORTS: usize = 20;

impl<'a> ModuleGraph<'a> {
    pub fn new(krate: &'a CrateSource) -> ModuleGraph<'a> {
        let modules = krate.modules.iter().map(|module| (module.path.clone(), module)).collect();
        let imports = krate.modules.iter().map(|module| (module.path.clone(), imports_of(module)));
        ModuleGraph { krate, modules, imports: imports.collect() }
    }

    /// All circles, the largest first.
    pub fn cycles(&self) -> Vec<ModuleCycle> {
        let mut siblings: BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, to) in self.uses() {
            let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            let (Some(one), Some(other)) = (from.get(common), to.get(common)) else { continue };
            let inside = from.iter().take(common).cloned().collect();
            siblings.entry(inside).or_default().entry(one.clone()).or_default().insert(other.clone());
        }
        let mut cycles: Vec<ModuleCycle> = Vec::new();
        for (inside, uses) in siblings {
            let inside = [vec![self.krate.name.clone()], inside].concat().join("::");
            let found = circles(&uses).into_iter();
            cycles.extend(found.map(|modules| ModuleCycle { inside: inside.clone(), modules }));
        }
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.modules.len()));
        cycles
    }

    /// Pairs of modules of which the first uses the second.
    pub fn uses(&self) -> BTreeSet<(ModulePath, ModulePath)> {
        let mut all = BTreeSet::new();
        for module in &self.krate.modules {
            for path in paths_of(module) {
                if let Some(to) = self.module_of(&path, MAX_REEXPORTS) {
                    all.insert((module.path.clone(), to));
                }
            }
        }
        all
    }

    /// The module in which what a path names is defined.
    fn module_of(&self, path: &[String], left: usize) -> Option<ModulePath> {
        let depth = (0..=path.len())
            .rev()
            .find(|depth| path.get(..*depth).is_some_and(|start| self.modules.contains_key(start)))?;
        let (module, rest) = path.split_at(depth);
        let reexport = rest.first().and_then(|name| self.imports.get(module)?.get(name));
        match (reexport, left.checked_sub(1)) {
            (Some(target), Some(left)) => {
                let rest = rest.get(1..).unwrap_or_default();
                self.module_of(&[target, rest].concat(), left)
            }
            _ => Some(module.to_vec()),
        }
    }
}

/// The names that a module has from others of its crate, with the whole path of each.
fn imports_of(module: &ModuleSource) -> BTreeMap<String, Vec<String>> {
    let mut imports = BTreeMap::new();
    for item in module.syntax.items.iter().filter(|item| !is_for_tests(attributes(item))) {
        let syn::Item::Use(item) = item else { continue };
        let mut leaves = Vec::new();
        use_leaves(&item.tree, Vec::new(), &mut leaves);
        for (path, name) in leaves {
            // In the root of a crate, paths may begin with a module's name.
            if let Some(path) = absolute(&path, &module.path, true) {
                imports.insert(name, path);
            }
        }
    }
    imports
}

fn use_leaves(tree: &syn::UseTree, before: Vec<String>, leaves: &mut Vec<(Vec<String>, String)>) {
    match tree {
        syn::UseTree::Path(path) => {
            use_leaves(&path.tree, [before, vec![path.ident.to_string()]].concat(), leaves);
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            leaves.extend(before.last().cloned().map(|name| (before, name)));
        }
        syn::UseTree::Name(name) => {
            let name = name.ident.to_string();
            leaves.push(([before, vec![name.clone()]].concat(), name));
        }
        syn::UseTree::Rename(rename) => {
            let path = [before, vec![rename.ident.to_string()]].concat();
            leaves.push((path, rename.rename.to_string()));
        }
        syn::UseTree::Group(group) => {
            group.items.iter().for_each(|tree| use_leaves(tree, before.clone(), leaves));
        }
        syn::UseTree::Glob(_) => {}
    }
}

/// A path from the root of the crate; none if it leads to another crate.
fn absolute(path: &[String], module: &[String], is_import: bool) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => absolute_from(rest, module.split_last()?.1),
        // `use child::Name` in the module that declares `child`.
        _ if is_import => Some([module, path].concat()),
        _ => None,
    }
}

fn absolute_from(path: &[String], module: &[String]) -> Option<Vec<String>> {
    match path.split_first() {
        Some((first, rest)) if first == "super" => absolute_from(rest, module.split_last()?.1),
        _ => Some([module, path].concat()),
    }
}

/// All paths in a module that lead somewhere in its crate.
fn paths_of(module: &ModuleSource) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for item in module.syntax.items.iter().filter(|item| !is_for_tests(attributes(item))) {
        scan(item.to_token_stream(), &mut paths);
    }
    paths.iter().filter_map(|path| absolute(path, &module.path, false)).collect()
}

/// Finds `crate::a::b`, `super::{a, b::c}` and the like, also inside macros.
fn scan(tokens: TokenStream, paths: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Group(group) => scan(group.stream(), paths),
            TokenTree::Ident(ident) if *ident == "crate" || *ident == "super" => {
                at += follow(&tokens, at, Vec::new(), paths);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Follows one path from its first name. Gives how many tokens it takes.
fn follow(tokens: &[TokenTree], start: usize, before: Vec<String>, paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = before;
    let mut at = start;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(ident)) => path.push(ident.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut place = 0;
                while place < inside.len() {
                    place += follow(&inside, place, path.clone(), paths).max(1);
                }
                return at + 1 - start;
            }
            _ => break,
        }
        at += 1;
        let is_colon =
            |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
        if !is_colon(at) || !is_colon(at + 1) {
            break;
        }
        at += 2;
    }
    paths.push(path);
    at - start
}

/// The groups of names that reach each other.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reach = |from: &str| -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from.to_owned()];
        while let Some(name) = open.pop() {
            for next in uses.get(&name).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = uses.keys().map(|name| (name, reach(name))).collect();
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (name, from_here) in &reached {
        let is_mutual = |other: &&String| reached.get(other).is_some_and(|back| back.contains(*name));
        let group: Vec<String> = from_here.iter().filter(is_mutual).cloned().collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn krate(modules: &[(&str, &str)]) -> CrateSource {
        let module = |(path, text): &(&str, &str)| ModuleSource {
            path: path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            file: "x.rs".into(),
            text: (*text).to_owned(),
            syntax: syn::parse_file(text).unwrap(),
        };
        CrateSource { name: "x".to_owned(), modules: modules.iter().map(module).collect() }
    }

    fn cycles(modules: &[(&str, &str)]) -> Vec<Vec<String>> {
        ModuleGraph::new(&krate(modules)).cycles().into_iter().map(|cycle| cycle.modules).collect()
    }

    #[test]
    fn a_circle_is_found_through_reexports_groups_and_macros() {
        let root = ("", "mod a; mod b; mod c; pub use b::Thing;");
        let uses_a = ("b", "pub struct Thing; use crate::{c::other, a as x};");
        assert_eq!(cycles(&[root, ("a", "fn f() { vec![crate::Thing]; }"), uses_a, ("c", "")]), [["a", "b"]]);
        assert!(cycles(&[root, ("a", "fn f() { crate::c::g(); }"), uses_a, ("c", "")]).is_empty());
        assert_eq!(cycles(&[root, ("a", "use super::b::Thing;"), uses_a, ("c", "")]), [["a", "b"]]);
    }

    #[test]
    fn tests_and_own_children_do_not_count() {
        let root = ("", "mod a; mod b;");
        let of_tests = ("a", "#[cfg(test)] mod tests { use crate::b::X; }");
        assert!(cycles(&[root, of_tests, ("b", "use crate::a::Y;")]).is_empty());
        let family = [
            ("", "mod a;"),
            ("a", "mod child; use child::X;"),
            ("a::child", "use super::Y; use crate::a::Z;"),
        ];
        assert!(cycles(&family).is_empty());
    }

    #[test]
    fn modules_of_a_folder_are_compared_with_each_other() {
        let root = ("", "mod a;");
        let one = ("a::one", "use super::two::X;");
        let two = ("a::two", "use crate::a::one::Y;");
        assert_eq!(cycles(&[root, ("a", "mod one; mod two;"), one, two]), [["one", "two"]]);
    }
}
