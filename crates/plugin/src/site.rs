//! Builds layers on this host, against the library that is installed here.
//!
//! Built layers are cached in `$XDG_CACHE_HOME/netdyno`, or in `~/.cache/netdyno`. The file name contains a
//! hash of the compiler's path, its options and the output of the preprocessor. That output covers the
//! source, `layer.h` and the library's own header with its version.

use crate::PluginError;
use crate::source::{HEADER, Library, Search, Source};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Options that build a shared library, and options that print the preprocessed source. `-P` omits line
/// markers, which contain folder names. `-dD` keeps all definitions, such as versions.
const MAKE: [&str; 5] = ["-std=c11", "-O2", "-Wall", "-shared", "-fPIC"];
const SHOW: [&str; 4] = ["-std=c11", "-E", "-P", "-dD"];
/// Bytes of the hash in a file name.
const KEY_BYTES: usize = 8;

/// Builds a layer by `compiler`, or by the compiler that the search finds, unless the cache has it.
/// Returns the file for [`crate::plugin::Plugin::load`].
pub fn build(source: &Source, compiler: Option<&Path>) -> Result<PathBuf, PluginError> {
    let compiler = find_compiler(source, compiler)?;
    let cache =
        cache().map_err(|error| PluginError::new(format!("there is no folder to build in: {error}")))?;
    // A library that is not where the user says must not be another one that the compiler finds.
    if source.library.is_some_and(|library| folder_of(&library).is_some()) {
        check(source, &compiler)?;
    }
    // After a failure the check of the library gives a clearer error than the compiler.
    build_in(&cache, source, &compiler).or_else(|error| check(source, &compiler).and(Err(error)))
}

/// Returns the compiler for a source, after checking that its library is installed.
pub fn find(source: &Source, named: Option<&Path>) -> Result<PathBuf, PluginError> {
    let compiler = find_compiler(source, named)?;
    check(source, &compiler)?;
    Ok(compiler)
}

/// Checks that the header of the source's library is installed.
fn check(source: &Source, compiler: &Path) -> Result<(), PluginError> {
    let Some(library) = &source.library else { return Ok(()) };
    let Library { name, variable, header, advice, .. } = library;
    if let Some(folder) = folder_of(library)
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

/// Returns the folder of the library that the user has named. The compiler runs in a folder of its own.
fn folder_of(library: &Library) -> Option<PathBuf> {
    std::path::absolute(variable_as_path(library.variable)?).ok()
}

/// Returns the compiler options that find the library, also when it is loaded.
fn options_of(library: &Library) -> Vec<String> {
    let link = library.link.iter().map(|option| (*option).to_owned());
    if let Some(folder) = folder_of(library) {
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
        Some(output) => with_run_path(&String::from_utf8_lossy(&output.stdout)),
        None => link.collect(),
    }
}

/// Returns the options of pkg-config, and behind each folder of libraries the option that finds them there when the layer is
/// loaded.
fn with_run_path(options: &str) -> Vec<String> {
    let run_path = |option: &str| option.strip_prefix("-L").map(|folder| format!("-Wl,-rpath,{folder}"));
    options
        .split_whitespace()
        .flat_map(|option| [Some(option.to_owned()), run_path(option)])
        .flatten()
        .collect()
}

/// Returns the compiler for a source: the named one, or the result of the search.
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

/// Returns the path of a program. A name with a slash is used as it is, and any other is searched in `PATH`.
fn found(program: &Path) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return std::path::absolute(program).ok().filter(is_program);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(is_program)
}

/// Returns the cache folder, and creates it if needed.
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

/// Does the same as [`build`] in a given folder and with an existing compiler.
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
    // A concurrent build of the same source produces the same file, so replacing it is harmless.
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

/// Returns the first error of the compiler.
fn first_error(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
    line.map_or_else(|| format!("it ended with {}", output.status), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_library_is_known_when_the_layer_is_loaded() {
        assert_eq!(
            with_run_path("-I/opt/a/include -L/opt/a/lib -lfabric \n"),
            ["-I/opt/a/include", "-L/opt/a/lib", "-Wl,-rpath,/opt/a/lib", "-lfabric"]
        );
    }
}
