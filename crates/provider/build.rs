//! Keeps the library loaded once it is: a program that ends without closing its domain leaves a thread in it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
