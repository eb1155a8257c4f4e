//! Reads the crates of the workspace as syntax trees: their types, functions, comments and modules.
//!
//! Only production code counts: what is below `crates/*/src`, without `#[cfg(test)]`.

mod modules;

use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::Visit;

pub use modules::{ModuleCycle, ModuleGraph};

/// One crate, parsed.
pub struct CrateSource {
    /// The name of its folder below `crates/`.
    pub name: String,
    pub modules: Vec<ModuleSource>,
}

/// One module, which is one file, with its place in the crate.
pub struct ModuleSource {
    /// The names on the way from the root of the crate; none for the root itself.
    pub path: Vec<String>,
    pub file: PathBuf,
    text: String,
    syntax: syn::File,
}

/// A struct, enum, union or trait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDefinition {
    pub name: String,
    pub is_public: bool,
    pub file: PathBuf,
    pub line: usize,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionDefinition {
    pub name: String,
    pub file: PathBuf,
    pub line: usize,
    /// From the first line of its signature to its closing brace.
    pub lines: usize,
}

/// How many lines there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// All that are not empty.
    pub all: usize,
    /// `///` and `//!`.
    pub docs: usize,
    /// `//`.
    pub comments: usize,
}

/// Parses all crates below a folder, in the order of their names.
pub fn read_crates(folder: &Path) -> Result<Vec<CrateSource>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
        .iter()
        .filter(|folder| folder.join("Cargo.toml").exists())
        .map(|folder| read_crate(folder))
        .collect()
}

fn read_crate(folder: &Path) -> Result<CrateSource, String> {
    let root =
        ["src/lib.rs", "src/main.rs"].map(|name| folder.join(name)).into_iter().find(|path| path.exists());
    let root = root.ok_or_else(|| format!("{} has neither lib.rs nor main.rs", folder.display()))?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut modules = Vec::new();
    read_module(&root, root.parent().unwrap_or(folder), Vec::new(), &mut modules)?;
    Ok(CrateSource { name, modules })
}

/// Reads a module and those that it declares, which are in `folder`.
fn read_module(
    file: &Path,
    folder: &Path,
    path: Vec<String>,
    modules: &mut Vec<ModuleSource>,
) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let syntax = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let declared = syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && !is_for_tests(&module.attrs) => {
            Some((module.ident.to_string(), chosen_path(&module.attrs)))
        }
        _ => None,
    });
    let declared: Vec<(String, Option<String>)> = declared.collect();
    modules.push(ModuleSource { path: path.clone(), file: file.to_owned(), text, syntax });
    for (name, chosen) in declared {
        let inside = folder.join(&name);
        let places = [
            // A file that is chosen by an attribute has its own modules beside it.
            chosen.map(|chosen| file.with_file_name(chosen)).map(|file| (file.with_file_name(""), file)),
            Some((inside.clone(), folder.join(format!("{name}.rs")))),
            Some((inside.clone(), inside.join("mod.rs"))),
        ];
        let found = places.into_iter().flatten().find(|(_, file)| file.exists());
        let (folder, file) =
            found.ok_or_else(|| format!("{}: the module {name} has no file", file.display()))?;
        read_module(&file, &folder, [path.clone(), vec![name]].concat(), modules)?;
    }
    Ok(())
}

impl CrateSource {
    pub fn types(&self) -> Vec<TypeDefinition> {
        self.modules.iter().flat_map(ModuleSource::types).collect()
    }

    pub fn functions(&self) -> Vec<FunctionDefinition> {
        self.modules.iter().flat_map(ModuleSource::functions).collect()
    }

    pub fn lines(&self) -> LineCounts {
        self.modules.iter().map(ModuleSource::lines).fold(LineCounts::default(), LineCounts::plus)
    }
}

impl ModuleSource {
    fn types(&self) -> Vec<TypeDefinition> {
        let mut found = Definitions { file: &self.file, types: Vec::new(), functions: Vec::new() };
        found.visit_file(&self.syntax);
        found.types
    }

    fn functions(&self) -> Vec<FunctionDefinition> {
        let mut found = Definitions { file: &self.file, types: Vec::new(), functions: Vec::new() };
        found.visit_file(&self.syntax);
        found.functions
    }

    fn lines(&self) -> LineCounts {
        // Tests are the last item of a file, if they are in it at all.
        let is_test = |item: &&syn::Item| is_for_tests(attributes(item));
        let end = self.syntax.items.iter().find(is_test).map(|item| item.span().start().line);
        let production = self.text.lines().take(end.map_or(usize::MAX, |line| line - 1)).map(str::trim_start);
        let mut counts = LineCounts::default();
        for line in production.filter(|line| !line.is_empty()) {
            counts.all += 1;
            if line.starts_with("///") || line.starts_with("//!") {
                counts.docs += 1;
            } else if line.starts_with("//") {
                counts.comments += 1;
            }
        }
        counts
    }
}

impl LineCounts {
    #[must_use]
    pub fn plus(self, other: LineCounts) -> LineCounts {
        LineCounts {
            all: self.all + other.all,
            docs: self.docs + other.docs,
            comments: self.comments + other.comments,
        }
    }
}

/// Collects what a file defines.
struct Definitions<'a> {
    file: &'a Path,
    types: Vec<TypeDefinition>,
    functions: Vec<FunctionDefinition>,
}

impl Definitions<'_> {
    fn add_type(&mut self, name: &syn::Ident, visibility: &syn::Visibility) {
        self.types.push(TypeDefinition {
            name: name.to_string(),
            is_public: matches!(visibility, syn::Visibility::Public(_)),
            file: self.file.to_owned(),
            line: name.span().start().line,
        });
    }

    fn add_function(&mut self, signature: &syn::Signature, whole: proc_macro2::Span) {
        let first = signature.span().start().line;
        self.functions.push(FunctionDefinition {
            name: signature.ident.to_string(),
            file: self.file.to_owned(),
            line: first,
            lines: whole.end().line + 1 - first,
        });
    }
}

impl<'ast> Visit<'ast> for Definitions<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        match item {
            syn::Item::Struct(item) => self.add_type(&item.ident, &item.vis),
            syn::Item::Enum(item) => self.add_type(&item.ident, &item.vis),
            syn::Item::Union(item) => self.add_type(&item.ident, &item.vis),
            syn::Item::Trait(item) => self.add_type(&item.ident, &item.vis),
            syn::Item::Fn(item) => self.add_function(&item.sig, item.span()),
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add_function(&item.sig, item.span());
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if item.default.is_some() {
            self.add_function(&item.sig, item.span());
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether something is compiled for tests alone.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    configuration(attributes).any(|condition| condition == "test" || condition.starts_with("all (test"))
}

/// The file that an attribute names for Linux: `#[cfg_attr(target_os = "linux", path = "linux.rs")]`.
fn chosen_path(attributes: &[syn::Attribute]) -> Option<String> {
    let texts = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg_attr") => Some(list.tokens.to_string()),
        _ => None,
    });
    let text = { texts }.find(|text| text.starts_with("target_os = \"linux\""))?;
    Some(text.split_once("path = \"")?.1.trim_end_matches('"').to_owned())
}

fn configuration(attributes: &[syn::Attribute]) -> impl Iterator<Item = String> {
    attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => Some(list.tokens.to_string()),
        _ => None,
    })
}
