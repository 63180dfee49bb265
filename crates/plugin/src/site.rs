//! Building layers on site, against the library that is here.
//!
//! What was built is kept in `$XDG_CACHE_HOME/netdyno`, or `~/.cache/netdyno`, under a name made
//! from the compiler's path, its options, and all that the preprocessor gives it to compile:
//! source, interface, and the library's own header with the version in it.

use crate::PluginError;
use crate::source::{HEADER, Library, Search, Source};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// How a compiler is told to make a shared library, and to show what it would make it from:
/// without line markers, which name folders, and with all definitions, such as versions.
const MAKE: [&str; 5] = ["-std=c11", "-O2", "-Wall", "-shared", "-fPIC"];
const SHOW: [&str; 4] = ["-std=c11", "-E", "-P", "-dD"];
/// Bytes of the hash that go into a name.
const KEY_BYTES: usize = 8;

/// Builds a layer by `compiler`, or by the one that is found, unless that has been done before.
/// The file that [`crate::plugin::Plugin::load`] takes.
pub fn build(source: &Source, compiler: Option<&Path>) -> Result<PathBuf, PluginError> {
    let compiler = find_compiler(source, compiler)?;
    let cache =
        cache().map_err(|error| PluginError::new(format!("there is no folder to build in: {error}")))?;
    // What is wrong with a library is said better than by the compiler.
    build_in(&cache, source, &compiler).or_else(|error| check(source, &compiler).and(Err(error)))
}

/// The compiler that a source is built by, where all is there that it takes.
pub fn find(source: &Source, named: Option<&Path>) -> Result<PathBuf, PluginError> {
    let compiler = find_compiler(source, named)?;
    check(source, &compiler)?;
    Ok(compiler)
}

/// Whether the header of its library is there.
fn check(source: &Source, compiler: &Path) -> Result<(), PluginError> {
    let Some(library) = &source.library else { return Ok(()) };
    let Library { name, variable, header, advice, .. } = library;
    if let Some(folder) = variable_as_path(variable)
        && !folder.join("include").join(header).is_file()
    {
        return Err(PluginError(format!(
            "{variable} names {}, and there is no include/{header}: {advice}",
            folder.display()
        )));
    }
    let options = options_of(library);
    let seen = Command::new(compiler)
        .args(&options)
        .args(["-E", "-include", header, "-x", "c", "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| PluginError::new(format!("cannot run {}: {error}", compiler.display())))?;
    match seen.status.success() {
        true => Ok(()),
        false => Err(PluginError(format!("no {name}: {advice}"))),
    }
}

/// What a compiler is told so that it finds the library.
fn options_of(library: &Library) -> Vec<String> {
    let link = library.link.iter().map(|option| (*option).to_owned());
    if let Some(folder) = variable_as_path(library.variable) {
        let folder = folder.display();
        let places =
            ["lib", "lib64"].map(|lib| [format!("-L{folder}/{lib}"), format!("-Wl,-rpath,{folder}/{lib}")]);
        return [format!("-I{folder}/include")]
            .into_iter()
            .chain(places.into_iter().flatten())
            .chain(link)
            .collect();
    }
    let said = Command::new("pkg-config")
        .args(["--cflags", "--libs", library.package])
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success());
    match said {
        Some(output) => {
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
        }
        None => link.collect(),
    }
}

/// The compiler that a source is built by: the one named, or the one that is found.
pub fn find_compiler(source: &Source, named: Option<&Path>) -> Result<PathBuf, PluginError> {
    let Search { variable, program, advice } = source.compiler;
    let given = named.map(Path::to_owned).or_else(|| variable_as_path(variable));
    let compiler = given.clone().unwrap_or_else(|| program.into());
    found(&compiler).ok_or_else(|| match given {
        Some(_) => PluginError(format!("there is no compiler {}: {advice}", compiler.display())),
        None => PluginError(format!("no {program}: {advice}")),
    })
}

fn variable_as_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The program of this name: as it stands where it has a slash in it, otherwise in `PATH`.
fn found(program: &Path) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return std::path::absolute(program).ok().filter(is_program);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(is_program)
}

/// Where built layers are kept.
fn cache() -> io::Result<PathBuf> {
    let base = variable_as_path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(variable_as_path("HOME")?.join(".cache")));
    let base =
        base.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "neither XDG_CACHE_HOME nor HOME is set"))?;
    let cache = base.join("netdyno");
    fs::create_dir_all(&cache)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", cache.display())))?;
    Ok(cache)
}

/// The same in a folder of choice, by a program that is there.
pub fn build_in(cache: &Path, source: &Source, compiler: &Path) -> Result<PathBuf, PluginError> {
    let cannot = |error: io::Error| PluginError::new(format!("cannot build in {}: {error}", cache.display()));
    let folder = tempfile::Builder::new().prefix("build-").tempdir_in(cache).map_err(cannot)?;
    let file = format!("{}.c", source.name);
    let options = source.library.map_or(Vec::new(), |library| options_of(&library));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    fs::write(folder.path().join("layer.h"), HEADER).map_err(cannot)?;
    fs::write(folder.path().join(&file), source.text()).map_err(cannot)?;
    let seen = run(compiler, folder.path(), &[&SHOW[..], &options, &[&file]].concat())?;
    let built = cache.join(format!("{}-{}.so", source.name, key(compiler, &options, &seen.stdout)));
    if built.is_file() {
        return Ok(built);
    }
    run(compiler, folder.path(), &[&MAKE[..], &[&file, "-o", "built.so"], &options].concat())?;
    // Whoever builds the same at the same time builds the same.
    fs::rename(folder.path().join("built.so"), &built).map_err(cannot)?;
    Ok(built)
}

fn key(compiler: &Path, options: &[&str], seen: &[u8]) -> String {
    let mut hash = Sha256::new();
    let all = [&MAKE[..], options].concat().join(" ");
    for part in [compiler.as_os_str().as_encoded_bytes(), all.as_bytes()] {
        hash.update(part);
        hash.update([0]);
    }
    hash.update(seen);
    hash.finalize().iter().take(KEY_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

fn run(compiler: &Path, folder: &Path, args: &[&str]) -> Result<Output, PluginError> {
    let output = Command::new(compiler)
        .args(args)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| PluginError::new(format!("cannot run {}: {error}", compiler.display())))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(PluginError::new(format!("{} failed: {}", compiler.display(), first_error(&output))))
}

/// What the compiler complains about first.
fn first_error(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
    line.map_or_else(|| format!("it ended with {}", output.status), str::to_owned)
}
