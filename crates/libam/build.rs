//! Links the library with `-z nodelete`: it stays loaded, because its own threads may still run in it.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
