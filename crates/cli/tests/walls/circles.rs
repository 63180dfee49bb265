//! Checks for import cycles between the files of a crate. Only a parent and its children may import each
//! other.
//!
//! The imports of a file are parsed from its text: `use` declarations, and paths that begin with `crate` or
//! `super`. Tests inside a file may import anything.

use super::crates;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path in the crate; the crate itself is the empty path.
type Module = Vec<String>;

type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn files_import_one_another_in_one_direction() {
    for folder in fs::read_dir(crates()).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let tied: Vec<String> = circles(&imports(&folder.join("src"))).iter().map(|c| in_words(c)).collect();
        assert!(tied.is_empty(), "files of {name} import one another: {}", tied.join("; "));
    }
}

#[test]
fn a_circle_is_found() {
    let module = |path: &str| -> Module { path.split("::").map(str::to_owned).collect() };
    let edges = |list: &[(&str, &[&str])]| -> Imports {
        list.iter().map(|(from, to)| (module(from), to.iter().map(|to| module(to)).collect())).collect()
    };
    let tied = edges(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a"])]);
    assert_eq!(circles(&tied), [vec![module("a"), module("b"), module("c")]]);
    let family = edges(&[("a", &["a::b"]), ("a::b", &["a"])]);
    assert!(circles(&family).is_empty());
}

#[test]
fn imports_are_read_off_every_form() {
    let text = "use crate::a::{self, b::{C, d}};\nuse super::e;\nlet f = crate::f::g(); // crate::not\n";
    let paths = imported(&code(text), &["x".into(), "y".into()]);
    let expected = ["a::self", "a::b::C", "a::b::d", "x::e", "f::g"];
    assert_eq!(paths.iter().map(|path| path.join("::")).collect::<Vec<_>>(), expected);
}

fn in_words(circle: &[Module]) -> String {
    circle.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(", ")
}

/// Returns the modules from which each module imports.
fn imports(src: &Path) -> Imports {
    let mut files = BTreeMap::new();
    find(src, &mut Vec::new(), &mut files);
    let known: BTreeSet<Module> = files.keys().cloned().collect();
    let resolve = |path: Module| {
        (0..=path.len()).rev().map(|len| path[..len].to_vec()).find(|start| known.contains(start))
    };
    let of = |(module, text): (&Module, &String)| {
        let found = imported(&code(text), module).into_iter().filter_map(resolve);
        (module.clone(), found.filter(|other| other != module).collect())
    };
    files.iter().map(of).collect()
}

/// Collects the text of each module below `folder`, without its tests.
fn find(folder: &Path, at: &mut Module, files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            at.push(name);
            find(&path, at, files);
            at.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
            let is_folder = ["mod", "lib", "main"].contains(&name.as_str());
            files.insert(if is_folder { at.clone() } else { [&at[..], &[name]].concat() }, text);
        }
    }
}

/// Returns the text without comments.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the paths, from the root of the crate, that `text` of `module` names.
fn imported(text: &str, module: &[String]) -> Vec<Module> {
    let mut paths = Vec::new();
    let mut rest = text;
    while let Some(at) = ["crate::", "super::"].iter().filter_map(|start| rest.find(start)).min() {
        let is_whole = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let end = end_of_tree(&rest[at..]);
        if is_whole {
            let tree: String = rest[at..at + end].split_whitespace().collect();
            expand(&tree, &mut paths);
        }
        rest = &rest[at + end..];
    }
    paths.into_iter().map(|path| from_root(path, module)).collect()
}

/// Returns the length of the path, or tree of paths, at the beginning of `text`.
fn end_of_tree(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' if text[..at].trim_end().ends_with("::") || depth > 0 => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' if depth > 0 => depth -= 1,
            _ if depth > 0 || c.is_alphanumeric() || c == '_' || c == ':' => {}
            _ => return at.max(1),
        }
    }
    text.len()
}

/// Adds all paths of a tree such as `a::{b, c::{d, e}}`.
fn expand(tree: &str, paths: &mut Vec<Module>) {
    let Some((start, branches)) = tree.split_once('{') else {
        return paths.push(tree.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect());
    };
    let (mut depth, mut branch) = (0, String::new());
    for c in branches.strip_suffix('}').unwrap_or(branches).chars().chain([',']) {
        match c {
            ',' if depth == 0 && branch.is_empty() => {}
            ',' if depth == 0 => expand(&(start.to_owned() + &std::mem::take(&mut branch)), paths),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                branch.push(c);
            }
        }
    }
}

fn from_root(path: Module, module: &[String]) -> Module {
    let mut base = if path[0] == "crate" { &[][..] } else { module };
    let names = path.iter().skip_while(|name| match name.as_str() {
        "crate" => true,
        "super" => {
            base = &base[..base.len().saturating_sub(1)];
            true
        }
        _ => false,
    });
    let names: Vec<String> = names.cloned().collect();
    [base, &names].concat()
}

fn are_kin(a: &[String], b: &[String]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Returns the sets of modules in which each module leads to all others.
fn circles(imports: &Imports) -> Vec<Vec<Module>> {
    let reached = |from: &Module| {
        let (mut seen, mut ahead) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = ahead.pop() {
            let next = imports.get(&module).into_iter().flatten().filter(|other| !are_kin(&module, other));
            ahead.extend(next.filter(|other| seen.insert((*other).clone())).cloned());
        }
        seen
    };
    let reaches: BTreeMap<&Module, BTreeSet<Module>> =
        imports.keys().map(|module| (module, reached(module))).collect();
    let circle_of = |module: &Module| -> Vec<Module> {
        let others = reaches[module].iter();
        others.filter(|other| reaches.get(other).is_some_and(|back| back.contains(module))).cloned().collect()
    };
    let all: BTreeSet<Vec<Module>> =
        imports.keys().map(circle_of).filter(|circle| circle.len() > 1).collect();
    all.into_iter().collect()
}
